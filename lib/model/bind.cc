#include "lib/model/bind.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/mapping/document/glob.h"
#include "lib/mapping/quantization.h"
#include "lib/model/graph/value_order.h"
#include "lib/model/tensor_finder.h"
#include "lib/model/variants.h"

namespace shardtool::model {
namespace {

std::vector<std::string> texts_of(std::span<const Dim> dims) {
  std::vector<std::string> texts;
  for (const Dim& dim : dims) texts.push_back(dim.text);
  return texts;
}

/// Binds the ops of a graph to the tensors of a checkpoint.
class Binder {
 public:
  /// `config` is all of config.json; `missing` may be null.
  Binder(Model& model, const mapping::ModelConfig& config, std::span<const TensorSpec> tensors,
         Misfits misfits, MissingTensors* missing)
      : model_(model),
        tensors_(tensors),
        stored_as_(mapping::quantization_tag(config).value_or("plain numbers")),
        has_own_head_(own_head(config) == OwnHead::kYes),
        misfits_(misfits),
        missing_(missing),
        finder_(*model.graph, model.config, tensors),
        is_read_(tensors.size()) {}

  Layer layer(Layer::Part part, const std::string& block,
              const std::vector<Alternatives>& stretches, i64 number);
  Layer layer(const std::vector<Block>& blocks, i64 number);
  void add(const Stack& stack);
  /// Returns the tensors that no op reads, and notes what their ops lack.
  std::vector<std::string> unread();

 private:
  /// Variant that a layer may use, and a later one is used because it lacks tensors.
  struct PassedOver {
    const Way* way;
    i64 layer;
  };

  bool has_required(const Way& way, i64 layer);
  bool has_required(const std::vector<Alternatives>& stretches, i64 layer);
  bool has_required(const Op& op, i64 layer);
  bool has_tensors(const std::vector<WeightRef>& weights, i64 layer);
  bool has_shapes_of(const Experts::Form& form, i64 layer);
  const Experts::Form& form_of(const Experts& experts, i64 layer);
  Shape shape_of(const WeightRef& ref) const;
  const Way& chosen(const Alternatives& ways, i64 layer);
  BoundOp bound(const Op& op, i64 layer);
  BoundWeight bound(const Op& op, const WeightRef& ref, i64 layer, i64 count);
  void require_shape(size_t tensor, const Op& op, const WeightRef& ref) const;
  const Error* unusable(const Dim& dim) const;
  void note_misfits(size_t tensor, const Op& op, const WeightRef& ref);
  const std::vector<WeightRef>& refs_of(const Op& op, i64 layer);
  void pass_over(const Alternatives& ways, const Way* used, i64 layer);
  bool is_begun(const Way& way, i64 layer);
  bool is_begun(const Block& block, i64 layer);
  void note_missing(std::span<const std::string> globs, i64 layer, i64 number);
  [[noreturn]] void fail_missing(const Op& op, const WeightRef& ref, i64 layer, i64 number);

  Model& model_;
  std::span<const TensorSpec> tensors_;
  std::string stored_as_;  ///< tag of the weights' storage format
  bool has_own_head_;
  Misfits misfits_;
  MissingTensors* missing_;  // may be null
  bool is_whole_ = false;    ///< record misfits of the current ops
  TensorFinder finder_;
  std::vector<bool> is_read_;
  std::set<std::string> made_;           ///< values made so far, in any layer
  std::vector<PassedOver> passed_over_;  ///< only with missing_
};

bool Binder::has_tensors(const std::vector<WeightRef>& weights, i64 layer) {
  return std::ranges::all_of(weights, [&](const WeightRef& ref) {
    return ref.optional || finder_.find(ref, layer, 0).has_value();
  });
}

bool Binder::has_shapes_of(const Experts::Form& form, i64 layer) {
  return std::all_of(form.weights.begin(), form.weights.end(), [&](const WeightRef& ref) {
    const auto tensor = finder_.find(ref, layer, 0);
    return !tensor || tensors_[*tensor].shape == shape_of(ref);
  });
}

/// Returns the first form whose tensors exist with its shapes, since forms may differ only in
/// shapes. If there is none: the last form whose tensors exist, or the last one, so that an error
/// names it.
const Experts::Form& Binder::form_of(const Experts& experts, i64 layer) {
  const Experts::Form* named = &experts.forms.back();
  for (const Experts::Form& form : experts.forms) {
    if (!has_tensors(form.weights, layer)) continue;
    if (has_shapes_of(form, layer)) return form;
    named = &form;
  }
  return *named;
}

Shape Binder::shape_of(const WeightRef& ref) const {
  Shape shape;
  for (const Dim& dim : ref.shape) shape.push_back(model_.size(dim));
  return shape;
}

bool Binder::has_required(const Op& op, i64 layer) {
  if (const auto* experts = std::get_if<Experts>(&op.kind)) {
    return std::any_of(experts->forms.begin(), experts->forms.end(),
                       [&](const Experts::Form& form) { return has_tensors(form.weights, layer); });
  }
  return has_tensors(op.weights, layer);
}

bool Binder::has_required(const Way& way, i64 layer) {
  if (way.where_made && !has_inputs(way, made_)) return false;
  return std::all_of(way.ops.begin(), way.ops.end(),
                     [&](const Op& op) { return has_required(op, layer); });
}

bool Binder::has_required(const std::vector<Alternatives>& stretches, i64 layer) {
  return std::all_of(stretches.begin(), stretches.end(), [&](const Alternatives& ways) {
    return has_required(chosen(ways, layer), layer);
  });
}

/// Returns the first allowed way whose tensors exist, or that is written for some layers: these
/// have no other. If there is none: the last allowed one, so that an error names it.
const Way& Binder::chosen(const Alternatives& ways, i64 layer) {
  const Way* last = &ways.back();
  for (const Way& way : ways) {
    if (!is_allowed(way, model_.config, layer)) continue;
    const bool is_decided = way.layers && (!way.where_made || has_inputs(way, made_));
    if (is_decided || has_required(way, layer)) return way;
    last = &way;
  }
  return *last;
}

/// Notes a tensor with one of these names. Does nothing if it is noted already.
void Binder::note_missing(std::span<const std::string> globs, i64 layer, i64 number) {
  if (missing_ == nullptr) return;
  bool is_new = false;
  for (const std::string& glob : globs) {
    for (std::string& name : finder_.names(glob, layer, number))
      is_new |= missing_->names.insert(std::move(name)).second;
  }
  if (is_new && missing_->count++ == 0)
    missing_->first = finder_.likeliest(globs.front(), layer, number);
}

/// Returns the op's weights; of experts, those of a form of which the checkpoint has a tensor.
const std::vector<WeightRef>& Binder::refs_of(const Op& op, i64 layer) {
  const auto* experts = std::get_if<Experts>(&op.kind);
  if (experts == nullptr) return op.weights;
  const auto has_some = [&](const Experts::Form& form) {
    return std::ranges::any_of(form.weights, [&](const WeightRef& ref) {
      return finder_.find(ref, layer, 0).has_value();
    });
  };
  const auto form = std::ranges::find_if(experts->forms, has_some);
  return form == experts->forms.end() ? experts->forms.back().weights : form->weights;
}

/// Notes the variants before the one that is used, all of them for null.
void Binder::pass_over(const Alternatives& ways, const Way* used, i64 layer) {
  if (missing_ == nullptr) return;
  for (const Way& way : ways) {
    if (&way == used) return;
    if (is_allowed(way, model_.config, layer)) passed_over_.push_back({&way, layer});
  }
}

/// True if the checkpoint has a tensor of the way that no op reads.
bool Binder::is_begun(const Way& way, i64 layer) {
  return std::ranges::any_of(way.ops, [&](const Op& op) {
    return std::ranges::any_of(refs_of(op, layer), [&](const WeightRef& ref) {
      const auto tensor = finder_.find(ref, layer, 0);
      return tensor && !is_read_[*tensor];
    });
  });
}

bool Binder::is_begun(const Block& block, i64 layer) {
  return std::ranges::any_of(block.stretches, [&](const Alternatives& ways) {
    return std::ranges::any_of(ways, [&](const Way& way) { return is_begun(way, layer); });
  });
}

void Binder::fail_missing(const Op& op, const WeightRef& ref, i64 layer, i64 number) {
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format("the graph of {} reads a tensor that the checkpoint lacks", model_.graph->family))
      .at(op.place)
      .tensor(finder_.likeliest(ref.names.front(), layer, number))
      .note("stored as", stored_as_)
      .help("`shardtool check` lists what a checkpoint lacks")
      .help("weights that are packed in a way that is not known have other names");
}

void Binder::require_shape(size_t tensor, const Op& op, const WeightRef& ref) const {
  const Shape expected = shape_of(ref);
  const bool is_number = ref.shape.empty() && element_count(tensors_[tensor].shape) == 1;
  if (tensors_[tensor].shape == expected || is_number) return;
  throw Error(ErrorCode::kShapeMismatch,
              fmt::format("the graph of {} reads a tensor of another shape", model_.graph->family))
      .at(op.place)
      .tensor(tensors_[tensor].name)
      .note("found", to_string(tensors_[tensor].shape))
      .note("expected", fmt::format("{}, which is [{}]", to_string(expected),
                                    fmt::join(texts_of(ref.shape), ", ")));
}

/// Returns the error of the first unusable size in the dim, or null.
const Error* Binder::unusable(const Dim& dim) const {
  for (const mapping::FoldedAxes& section : dim.sections) {
    for (const mapping::Factor& factor : section.factors) {
      const auto found = model_.unusable.find(factor.axis);
      if (found != model_.unusable.end()) return &found->second;
    }
  }
  return nullptr;
}

void Binder::note_misfits(size_t tensor, const Op& op, const WeightRef& ref) {
  constexpr int kBitsOfByte = 8;
  const TensorSpec& spec = tensors_[tensor];
  const DtypeInfo& dtype = dtype_info(spec.dtype);
  const bool is_packed = dtype.kind != DtypeKind::kFloat || dtype.bits < kBitsOfByte;
  if (is_packed || is_read_[tensor] || spec.shape.size() != ref.shape.size()) return;
  const auto is_known = [&](const mapping::FoldedAxes& section) {
    return std::ranges::all_of(section.factors, [&](const mapping::Factor& factor) {
      return factor.axis.empty() || model_.sizes.contains(factor.axis);
    });
  };
  for (size_t axis = 0; axis < ref.shape.size(); ++axis) {
    if (const Error* error = unusable(ref.shape[axis])) {
      model_.misfits.push_back({tensor, axis, 0, &ref.shape[axis], &op, *error});
      continue;
    }
    if (!std::ranges::all_of(ref.shape[axis].sections, is_known)) continue;
    const i64 expected = model_.size(ref.shape[axis]);
    if (spec.shape[axis] == expected) continue;
    model_.misfits.push_back({tensor, axis, expected, &ref.shape[axis], &op, {}});
  }
}

BoundWeight Binder::bound(const Op& op, const WeightRef& ref, i64 layer, i64 count) {
  BoundWeight weight;
  for (i64 number = 0; number < count; ++number) {
    const auto tensor = finder_.find(ref, layer, number);
    if (!tensor && ref.optional) return {};
    if (!tensor && misfits_ == Misfits::kLeaveOut) {
      note_missing(ref.names, layer, number);
      continue;
    }
    if (!tensor) fail_missing(op, ref, layer, number);
    if (misfits_ == Misfits::kRefuse) require_shape(*tensor, op, ref);
    if (is_whole_) note_misfits(*tensor, op, ref);
    is_read_[*tensor] = true;
    weight.push_back(*tensor);
  }
  // The other names of an output matrix are those of tables of words.
  if (op.is_head && has_own_head_ && !finder_.find(ref.names.front(), layer, 0))
    note_missing(std::span(ref.names).first(1), layer, 0);
  return weight;
}

BoundOp Binder::bound(const Op& op, i64 layer) {
  BoundOp found{&op, {}};
  const auto* experts = std::get_if<Experts>(&op.kind);
  if (experts == nullptr) {
    for (const WeightRef& ref : op.weights) {
      found.weights.push_back(
          bound(op, ref, layer, ref.heads ? count_of(model_, *ref.heads, "heads") : 1));
    }
    return found;
  }
  found.form = &form_of(*experts, layer);
  const i64 count = found.form->per_expert ? count_of(model_, experts->experts, "experts") : 1;
  for (const WeightRef& ref : found.form->weights) {
    found.weights.push_back(bound(op, ref, layer, count));
  }
  return found;
}

Layer Binder::layer(Layer::Part part, const std::string& block,
                    const std::vector<Alternatives>& stretches, i64 number) {
  Layer found{part, block, number, {}, {}, false, false};
  for (const Alternatives& ways : stretches) {
    const Way& way = chosen(ways, number);
    pass_over(ways, &way, number);
    is_whole_ = misfits_ == Misfits::kLeaveOut && has_required(way, number);
    for (const Op& op : way.ops) {
      found.ops.push_back(bound(op, number));
      made_.insert(op.out.begin(), op.out.end());
    }
  }
  return found;
}

Layer Binder::layer(const std::vector<Block>& blocks, i64 number) {
  const auto fits = [&](const Block& block) { return has_required(block.stretches, number); };
  const auto block = std::find_if(blocks.begin(), blocks.end(), fits);
  const Block& used = block == blocks.end() ? blocks.back() : *block;
  for (const Block& other : blocks) {
    if (&other == &used) break;
    for (const Alternatives& ways : other.stretches) pass_over(ways, nullptr, number);
  }
  return layer(Layer::Part::kBlock, used.name, used.stretches, number);
}

void Binder::add(const Stack& stack) {
  const auto has_layer = [&](const Block& block) { return is_begun(block, 0); };
  const bool is_there = has_required(stack.start, -1) ||
                        (missing_ != nullptr && std::ranges::any_of(stack.blocks, has_layer));
  if (stack.is_vision_encoder && !is_there) return;
  const size_t first = model_.layers.size();
  model_.layers.push_back(
      layer(Layer::Part::kStart, stack.name.empty() ? "start" : stack.name, stack.start, -1));
  const i64 layers = count_of(model_, stack.layers, "layers");
  for (i64 number = 0; number < layers; ++number) {
    model_.layers.push_back(layer(stack.blocks, number));
  }
  if (stack.end) {
    model_.layers.push_back(
        layer(Layer::Part::kStackEnd, stack.end->name, stack.end->stretches, -1));
  }
  for (size_t i = first; i < model_.layers.size(); ++i) {
    model_.layers[i].of_prompt = stack.of_prompt;
    model_.layers[i].is_vision_encoder = stack.is_vision_encoder;
  }
}

std::vector<std::string> Binder::unread() {
  std::vector<std::function<bool(std::string_view)>> ignored;
  for (const std::string& glob : model_.graph->ignored)
    ignored.push_back(mapping::glob_filter(glob));
  std::vector<std::string> names;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const std::string& name = tensors_[t].name;
    if (std::ranges::any_of(ignored, [&name](const auto& is) { return is(name); }))
      is_read_[t] = true;
    if (!is_read_[t]) names.push_back(name);
  }
  for (const auto& [way, layer] : passed_over_) {
    if (!is_begun(*way, layer)) continue;
    for (const Op& op : way->ops) {
      for (const WeightRef& ref : refs_of(op, layer)) {
        if (!ref.optional && !finder_.find(ref, layer, 0)) note_missing(ref.names, layer, 0);
      }
    }
  }
  return names;
}

}  // namespace

std::string name_of(const Layer& layer) {
  return layer.number < 0 ? layer.block : fmt::format("{} {}", layer.block, layer.number);
}

Model bind_model(std::shared_ptr<const Graph> graph, const mapping::ModelConfig& config,
                 std::span<const TensorSpec> tensors, Misfits misfits, MissingTensors* missing) {
  Model model{sizes_of(*graph, config), graph, {}, {}, {}};
  Binder binder(model, config, tensors, misfits, missing);
  for (const Stack& stack : model.graph->stacks) binder.add(stack);
  model.layers.push_back(binder.layer(Layer::Part::kEnd, "end", model.graph->end, -1));
  model.unread = binder.unread();
  order_values(model);
  return model;
}

}  // namespace shardtool::model

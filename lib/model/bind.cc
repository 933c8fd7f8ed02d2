#include "lib/model/bind.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <unordered_map>

#include "lib/base/error.h"
#include "lib/base/name_map.h"
#include "lib/base/text.h"
#include "lib/mapping/document/glob.h"
#include "lib/mapping/quantization.h"
#include "lib/model/graph/layer_number.h"
#include "lib/model/graph/requirement.h"
#include "lib/model/graph/value_order.h"
#include "lib/model/missing_tensors.h"
#include "lib/ops/spelling.h"

namespace shardtool::model {
namespace {

std::vector<std::string> texts_of(std::span<const Dim> dims) {
  std::vector<std::string> texts;
  for (const Dim& dim : dims) texts.push_back(dim.text);
  return texts;
}

/// Finds tensors by the names of weight references.
class Binder {
 public:
  /// `stored_as` is the tag of the weights' storage format by config.json.
  Binder(Model& model, std::span<const TensorSpec> tensors, std::string stored_as, Misfits misfits)
      : model_(model),
        tensors_(tensors),
        stored_as_(std::move(stored_as)),
        misfits_(misfits),
        is_read_(tensors.size()) {
    by_name_.reserve(tensors.size());
    for (size_t t = 0; t < tensors.size(); ++t) by_name_.emplace(tensors[t].name, t);
  }

  Layer layer(Layer::Part part, const std::string& block,
              const std::vector<Alternatives>& stretches, i64 number);
  Layer layer(const std::vector<Block>& blocks, i64 number);
  i64 count_of(const ops::Dim& number, std::string_view what) const;
  void add(const Stack& stack);
  std::vector<std::string> unread() const;

 private:
  i64 number_of(const std::string& name, i64 layer, i64 number) const;
  std::optional<size_t> find(const std::string& glob, i64 layer, i64 number);
  std::optional<size_t> find(const WeightRef& ref, i64 layer, i64 number);
  bool has_required(const Way& way, i64 layer);
  bool has_inputs(const Way& way) const;
  bool has_required(const std::vector<Alternatives>& stretches, i64 layer);
  bool is_allowed(const Way& way, i64 layer) const;
  bool has_required(const Op& op, i64 layer);
  bool has_form(const Experts::Form& form, i64 layer);
  bool has_shapes_of(const Experts::Form& form, i64 layer);
  const Experts::Form& form_of(const Experts& experts, i64 layer);
  Shape shape_of(const WeightRef& ref) const;
  const Way& chosen(const Alternatives& ways, i64 layer);
  BoundOp bound(const Op& op, i64 layer);
  BoundWeight bound(const Op& op, const WeightRef& ref, i64 layer, i64 count);
  void require_shape(size_t tensor, const Op& op, const WeightRef& ref) const;
  const Error* unusable(const Dim& dim) const;
  void note_misfits(size_t tensor, const Op& op, const WeightRef& ref);
  [[noreturn]] void fail_missing(const Op& op, const WeightRef& ref, i64 layer) const;

  Model& model_;
  std::span<const TensorSpec> tensors_;
  std::string stored_as_;
  Misfits misfits_;
  bool is_whole_ = false;  ///< record misfits of the current ops
  NameViewMap<size_t> by_name_;
  std::vector<bool> is_read_;
  std::unordered_map<const std::string*, ops::Spelling> spellings_;  ///< one per glob of the graph
  std::set<std::string> made_;  ///< values made so far, in any layer
};

/// Returns the number that replaces a placeholder in a tensor name: the layer's, one of the graph's
/// layer numbers, or else `number` (an expert's or a head's).
i64 Binder::number_of(const std::string& name, i64 layer, i64 number) const {
  if (name == "layer") return layer;
  const auto& named = model_.graph->layer_numbers;
  const auto found = named.find(name);
  return found == named.end() ? number : value_at(found->second, model_.config, layer);
}

std::optional<size_t> Binder::find(const std::string& glob, i64 layer, i64 number) {
  const auto [spelling, is_new] = spellings_.try_emplace(&glob, glob);
  const auto numbers = [&](const std::string& name) { return number_of(name, layer, number); };
  for (size_t choice = 0; choice < spelling->second.count(); ++choice) {
    const auto found = by_name_.find(spelling->second.text(choice, numbers));
    if (found != by_name_.end()) return found->second;
  }
  return std::nullopt;
}

std::optional<size_t> Binder::find(const WeightRef& ref, i64 layer, i64 number) {
  for (const std::string& glob : ref.names) {
    if (const auto found = find(glob, layer, number)) return found;
  }
  return std::nullopt;
}

bool Binder::has_form(const Experts::Form& form, i64 layer) {
  return std::all_of(form.weights.begin(), form.weights.end(), [&](const WeightRef& ref) {
    return ref.optional || find(ref, layer, 0).has_value();
  });
}

bool Binder::has_shapes_of(const Experts::Form& form, i64 layer) {
  return std::all_of(form.weights.begin(), form.weights.end(), [&](const WeightRef& ref) {
    const auto tensor = find(ref, layer, 0);
    return !tensor || tensors_[*tensor].shape == shape_of(ref);
  });
}

/// Returns the first form whose tensors exist with its shapes, since forms may differ only in
/// shapes. If there is none: the last form whose tensors exist, or the last one, so that an error
/// names it.
const Experts::Form& Binder::form_of(const Experts& experts, i64 layer) {
  const Experts::Form* named = &experts.forms.back();
  for (const Experts::Form& form : experts.forms) {
    if (!has_form(form, layer)) continue;
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
                       [&](const Experts::Form& form) { return has_form(form, layer); });
  }
  return std::all_of(op.weights.begin(), op.weights.end(), [&](const WeightRef& ref) {
    return ref.optional || find(ref, layer, 0).has_value();
  });
}

/// Returns true if all inputs of the way are made by an earlier layer or in the way itself.
bool Binder::has_inputs(const Way& way) const {
  std::set<std::string> made = made_;
  for (const Op& op : way.ops) {
    const auto is_made = [&](const std::string& name) { return made.contains(name); };
    if (!std::all_of(op.in.begin(), op.in.end(), is_made)) return false;
    made.insert(op.out.begin(), op.out.end());
  }
  return true;
}

bool Binder::has_required(const Way& way, i64 layer) {
  if (way.where_made && !has_inputs(way)) return false;
  return std::all_of(way.ops.begin(), way.ops.end(),
                     [&](const Op& op) { return has_required(op, layer); });
}

bool Binder::has_required(const std::vector<Alternatives>& stretches, i64 layer) {
  return std::all_of(stretches.begin(), stretches.end(), [&](const Alternatives& ways) {
    return has_required(chosen(ways, layer), layer);
  });
}

bool Binder::is_allowed(const Way& way, i64 layer) const {
  if (first_unmet(way.requires_config, model_.config) != nullptr) return false;
  return !way.layers || contains(*way.layers, model_.config, layer);
}

/// Returns the first allowed way whose tensors exist. If there is none: the last allowed one, so
/// that an error names it.
const Way& Binder::chosen(const Alternatives& ways, i64 layer) {
  const Way* last = &ways.back();
  for (const Way& way : ways) {
    if (!is_allowed(way, layer)) continue;
    if (has_required(way, layer)) return way;
    last = &way;
  }
  return *last;
}

void Binder::fail_missing(const Op& op, const WeightRef& ref, i64 layer) const {
  const auto numbers = [&](const std::string& word) { return number_of(word, layer, 0); };
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format("the graph of {} reads a tensor that the checkpoint lacks", model_.graph->family))
      .at(op.place)
      .tensor(likeliest_name(ref.names.front(), numbers, tensors_))
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
    const auto tensor = find(ref, layer, number);
    if (!tensor && ref.optional) return {};
    if (!tensor && misfits_ == Misfits::kLeaveOut) continue;
    if (!tensor) fail_missing(op, ref, layer);
    if (misfits_ == Misfits::kRefuse) require_shape(*tensor, op, ref);
    if (is_whole_) note_misfits(*tensor, op, ref);
    is_read_[*tensor] = true;
    weight.push_back(*tensor);
  }
  return weight;
}

BoundOp Binder::bound(const Op& op, i64 layer) {
  BoundOp found{&op, {}};
  const auto* experts = std::get_if<Experts>(&op.kind);
  if (experts == nullptr) {
    for (const WeightRef& ref : op.weights) {
      found.weights.push_back(bound(op, ref, layer, ref.heads ? count_of(*ref.heads, "heads") : 1));
    }
    return found;
  }
  found.form = &form_of(*experts, layer);
  const i64 count = found.form->per_expert ? count_of(experts->experts, "experts") : 1;
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
  return layer(Layer::Part::kBlock, used.name, used.stretches, number);
}

/// Returns a number of layers, experts or heads, which has a limit: binding those without tensors
/// would take time without bound. Throws kConfig.
i64 Binder::count_of(const ops::Dim& number, std::string_view what) const {
  constexpr i64 kMost = 1 << 16;
  const i64 count = model_.size(number);
  if (count <= kMost) return count;
  throw Error(ErrorCode::kConfig,
              fmt::format("a stack of {} {} is more than a graph may have", count, what))
      .note("found", fmt::format("{} = {}", number.text, count))
      .note("expected", fmt::format("at most {}", kMost))
      .help(fmt::format("correct the number of {} in {}", what, model_.config.file()));
}

void Binder::add(const Stack& stack) {
  if (stack.beside && !has_required(stack.start, -1)) return;
  const size_t first = model_.layers.size();
  model_.layers.push_back(
      layer(Layer::Part::kStart, stack.name.empty() ? "start" : stack.name, stack.start, -1));
  const i64 layers = count_of(stack.layers, "layers");
  for (i64 number = 0; number < layers; ++number) {
    model_.layers.push_back(layer(stack.blocks, number));
  }
  if (stack.end) {
    model_.layers.push_back(
        layer(Layer::Part::kStackEnd, stack.end->name, stack.end->stretches, -1));
  }
  for (size_t i = first; i < model_.layers.size(); ++i) {
    model_.layers[i].of_prompt = stack.of_prompt;
    model_.layers[i].beside = stack.beside;
  }
}

std::vector<std::string> Binder::unread() const {
  std::vector<std::function<bool(std::string_view)>> ignored;
  for (const std::string& glob : model_.graph->ignored)
    ignored.push_back(mapping::glob_filter(glob));
  std::vector<std::string> names;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const std::string& name = tensors_[t].name;
    const bool known = is_read_[t] || std::any_of(ignored.begin(), ignored.end(),
                                                  [&name](const auto& is) { return is(name); });
    if (!known) names.push_back(name);
  }
  return names;
}

}  // namespace

std::string name_of(const Layer& layer) {
  return layer.number < 0 ? layer.block : fmt::format("{} {}", layer.block, layer.number);
}

Model bind_model(std::shared_ptr<const Graph> graph, const mapping::ModelConfig& config,
                 std::span<const TensorSpec> tensors, Misfits misfits) {
  Model model{sizes_of(*graph, config), graph, {}, {}, {}};
  Binder binder(model, tensors, mapping::quantization_tag(config).value_or("plain numbers"),
                misfits);
  for (const Stack& stack : model.graph->stacks) binder.add(stack);
  model.layers.push_back(binder.layer(Layer::Part::kEnd, "end", model.graph->end, -1));
  order_values(model);
  model.unread = binder.unread();
  return model;
}

}  // namespace shardtool::model

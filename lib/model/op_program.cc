#include "lib/model/op_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lib/base/error.h"
#include "lib/mapping/document/name_form.h"
#include "lib/model/causal.h"
#include "lib/ops/mesh_cuts.h"
#include "lib/ops/op_table.h"
#include "lib/ops/rules.h"

namespace shardtool::model {
namespace {

using plan::OpRow;
using plan::Placement;

const Placement kWhole = Placement::replicated();
const Placement kBatch = Placement::sharded(kBatchAxis);
const Placement kTokens = Placement::sharded(kTokenAxis);
const Placement kFeatures = Placement::sharded(kFeatureAxis);

/// Layouts of whole tensors on one device: sizes of values do not depend on a mesh.
class WholeLayouts {
 public:
  explicit WholeLayouts(std::span<const TensorSpec> tensors) {
    for (const TensorSpec& tensor : tensors) {
      std::vector<layout::LayoutAxis> axes;
      for (const i64 extent : tensor.shape) {
        axes.push_back({.expr = layout::whole(extent), .logical = {}});
      }
      layouts_.emplace_back(mesh_, tensor.shape, std::move(axes));
    }
  }
  LayoutOf of() const {
    return [this](size_t tensor) -> const layout::Layout& { return layouts_[tensor]; };
  }
  const mesh::Mesh& mesh() const { return mesh_; }

 private:
  mesh::Mesh mesh_{{{"all", 1}}};
  std::vector<layout::Layout> layouts_;
};

/// A value of a layer.
struct Lowered {
  std::string name;  ///< unique in the program
  Shape shape;
};

std::vector<Placement> in_value_axes(std::vector<Placement> placements, size_t values) {
  for (size_t i = 0; i < values; ++i) {
    if (placements[i].is(Placement::Kind::kSharded)) placements[i].axis += 1;
  }
  return placements;
}

/// Shape of a result whose tokens and sequences are those of the largest input.
Shape shape_of(const std::vector<Lowered>& in, i64 width) {
  Shape shape{1, 1, width};
  for (const Lowered& value : in) {
    shape[kBatchAxis] = std::max(shape[kBatchAxis], value.shape[kBatchAxis]);
    shape[kTokenAxis] = std::max(shape[kTokenAxis], value.shape[kTokenAxis]);
  }
  return shape;
}

/// Lowers one layer.
class Lowering {
 public:
  Lowering(const Model& model, const Layer& layer, std::span<const TensorSpec> tensors,
           const LayoutOf& layouts, const mesh::Mesh& mesh, const PassTokens& pass)
      : model_(model),
        layer_(layer),
        tensors_(tensors),
        layouts_(layouts),
        pass_(pass),
        element_bytes_(std::max<i64>(1, bits(pass.activations) / 8)) {
    made_.program.mesh = mesh;
  }

  /// Adds a value of an earlier layer.
  void enter(const std::string& name, const Shape& shape) {
    values_[name] = {name, shape};
    made_.program.operands.push_back({name, shape, element_bytes_, whole()});
  }

  /// Replaces the entering value by its last position.
  void read_last_position(const std::string& name) {
    Shape shape = values_.at(name).shape;
    if (shape[kTokenAxis] == 1) return;
    const std::vector<OpRow> rows = plan::untouched_rows(shape, {kTokenAxis}, true);
    shape[kTokenAxis] = 1;
    add("last position", {values_.at(name)}, {name}, {shape}, rows);
  }

  /// Declares a value that a prompt without images lacks.
  void enter_absent(const std::string& name) { absent_.insert(name); }

  /// Adds the ops of a step, unless they read what the prompt lacks.
  void add(const ops::Step& step, bool has_encoder) {
    const BoundOp& bound = *step.op;
    if (is_absent(*bound.op)) return leave_out(*bound.op);
    std::vector<Lowered> in;
    for (const std::string& name : bound.op->in) in.push_back(values_.at(name));
    std::vector<OpRow> rows = rows_of(bound, step.widths, in);
    std::vector<Shape> shapes;
    for (const i64 width : step.made_widths) {
      shapes.push_back(in.empty() ? shape_of_input(bound, step, has_encoder, width)
                                  : shape_of(readers_of(bound, in), width));
    }
    drop_single_rows(shapes.front(), rows);
    for (size_t i = 0; i < bound.weights.size(); ++i) add_weight(bound, i, in);
    const bool gathers = bound.op->is_head || std::holds_alternative<Router>(bound.op->kind);
    const bool makes = bound.op->in.empty();
    add(std::string(bound.op->row->title), std::move(in), bound.op->out, shapes, std::move(rows));
    made_.program.ops.back().bounds_result = makes;
    if (gathers) gather(bound);
  }

  LayerProgram finish() {
    for (const auto& [name, shape] : passed()) {
      made_.program.kept.emplace_back(values_.at(name).name, name);
    }
    return std::move(made_);
  }
  /// Shapes of the values for later layers, without those that the prompt lacks.
  std::map<std::string, Shape> passed() const {
    std::map<std::string, Shape> shapes;
    for (const std::string& name : layer_.passes) {
      if (!absent_.contains(name)) shapes[name] = values_.at(name).shape;
    }
    return shapes;
  }

 private:
  bool is_absent(const Op& op) const {
    return std::ranges::any_of(op.in, [&](const auto& name) { return absent_.contains(name); });
  }
  /// An insertion of nothing is the words alone. Other results of absent values are absent.
  void leave_out(const Op& op) {
    if (std::holds_alternative<ops::Insert>(op.kind)) {
      values_[op.out.front()] = values_.at(op.in.front());
    } else {
      absent_.insert(op.out.begin(), op.out.end());
    }
  }

  /// The inputs whose tokens the result has: an attention's keys may have others.
  static std::vector<Lowered> readers_of(const BoundOp& bound, const std::vector<Lowered>& in) {
    const bool is_attention = std::holds_alternative<Attention>(bound.op->kind);
    return is_attention ? std::vector<Lowered>{in.front()} : in;
  }
  /// One token or sequence is not cut.
  static void drop_single_rows(const Shape& result, std::vector<OpRow>& rows) {
    std::erase_if(rows, [&result](const OpRow& row) {
      return (row.result == kTokens && result[kTokenAxis] == 1) ||
             (row.result == kBatch && result[kBatchAxis] == 1);
    });
  }

  std::vector<Placement> whole() const {
    return std::vector<Placement>(made_.program.mesh.axes().size());
  }

  /// The op's rules in the axes of the program, without absent weights, and the rule of its own
  /// sequences.
  std::vector<OpRow> rows_of(const BoundOp& bound, const std::vector<i64>& widths,
                             const std::vector<Lowered>& in) const {
    std::vector<OpRow> rows;
    for (OpRow& rule : ops::rules_of(ops::RuleSite(model_, bound, widths))) {
      rule.operands = in_value_axes(std::move(rule.operands), in.size());
      rule.result = in_value_axes({rule.result}, 1).front();
      for (size_t i = 0; i < in.size(); ++i) {
        const bool by_tokens = rule.operands[i] == kTokens && in[i].shape[kTokenAxis] == 1;
        if (by_tokens && rule.result == kTokens) rule.operands[i] = kWhole;
      }
      for (size_t i = bound.weights.size(); i-- > 0;) {
        if (!bound.weights[i].empty()) continue;
        rule.operands.erase(rule.operands.begin() + static_cast<i64>(in.size() + i));
      }
      rows.push_back(std::move(rule));
    }
    add_batch_row(bound, in, rows);
    return rows;
  }

  /// Sequences do not depend on each other.
  void add_batch_row(const BoundOp& bound, const std::vector<Lowered>& in,
                     std::vector<OpRow>& rows) const {
    OpRow row{std::vector<Placement>(rows.front().operands.size(), kWhole), kBatch};
    bool any = std::holds_alternative<Embed>(bound.op->kind);
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i].shape[kBatchAxis] == 1) continue;
      row.operands[i] = kBatch;
      any = true;
    }
    if (any) rows.insert(rows.begin() + 1, std::move(row));
  }

  /// Shape of the result of an op without inputs.
  Shape shape_of_input(const BoundOp& bound, const ops::Step& step, bool has_encoder,
                       i64 width) const {
    const auto& kind = bound.op->kind;
    const bool is_per_sequence =
        std::holds_alternative<Embed>(kind) || std::holds_alternative<ops::ExtraInput>(kind);
    const bool is_per_token = is_per_sequence || std::holds_alternative<ops::Sinusoids>(kind);
    const bool is_of_prompt = step.of_prompt || !has_encoder;
    return {is_per_sequence ? pass_.batch : 1, is_per_token && is_of_prompt ? pass_.prompt_len : 1,
            width};
  }

  void add_weight(const BoundOp& bound, size_t i, std::vector<Lowered>& in) {
    const BoundWeight& weight = bound.weights[i];
    if (weight.empty()) return;
    const TensorSpec& first = tensors_[weight.front()];
    std::string name = name_in_layer(first.name);
    Shape shape = first.shape;
    if (weight.size() > 1) {
      shape.insert(shape.begin(), std::ssize(weight));
      if (const size_t number = name.find(".0."); number != std::string::npos)
        name[number + 1] = '*';
    }
    const auto known = std::ranges::find(made_.program.operands, name, &plan::Operand::name);
    if (known == made_.program.operands.end()) {
      made_.program.operands.push_back({name, shape, std::max<i64>(1, bits(first.dtype) / 8),
                                        ops::placement_of(made_.program.mesh, weight, layouts_)});
    }
    in.push_back({name, shape});
  }

  /// Adds an op that needs all features of the results: a choice among experts, or the end.
  void gather(const BoundOp& bound) {
    const std::string& name = bound.op->out.front();
    const Lowered value = values_.at(name);
    std::vector<OpRow> rows{{{kWhole}, kWhole}};
    if (!bound.op->is_head) rows.push_back({{kBatch}, kBatch});
    if (!bound.op->is_head) rows.push_back({{kTokens}, kTokens});
    drop_single_rows(value.shape, rows);
    add(bound.op->is_head ? "all logits" : "choice", {value}, {name}, {value.shape},
        std::move(rows));
  }

  void add(std::string title, std::vector<Lowered> in, const std::vector<std::string>& out,
           const std::vector<Shape>& shapes, std::vector<OpRow> rows) {
    plan::ProgramOp op{std::move(title), {}, {}, shapes, std::move(rows)};
    op.element_bytes = element_bytes_;
    for (Lowered& operand : in) op.in.push_back(std::move(operand.name));
    std::string names;
    for (size_t i = 0; i < out.size(); ++i) {
      const auto before = values_.find(out[i]);
      std::string name = out[i];
      if (before != values_.end()) name = before->second.name + "'";
      values_[out[i]] = {name, shapes[i]};
      absent_.erase(out[i]);
      op.out.push_back(std::move(name));
      names += (names.empty() ? "" : ", ") + out[i];
    }
    made_.program.ops.push_back(std::move(op));
    made_.names.push_back(std::move(names));
  }

  const Model& model_;
  const Layer& layer_;
  std::span<const TensorSpec> tensors_;
  const LayoutOf& layouts_;
  const PassTokens& pass_;
  i64 element_bytes_;
  std::map<std::string, Lowered> values_;
  std::set<std::string> absent_;
  LayerProgram made_;
};

bool is_equal(const plan::Program& a, const plan::Program& b) {
  return a.operands == b.operands && a.ops == b.ops && a.kept == b.kept;
}

void refuse_stages(const Model& model, const LayoutOf& layouts, const mesh::Mesh& mesh) {
  for (const Layer& layer : model.layers) {
    for (const BoundOp& bound : layer.ops) {
      if (bound.form != nullptr || bound.weights.empty()) continue;
      for (const size_t tensor : bound.weights.front()) {
        if (bound.weights.front().size() != 1) continue;
        const auto absent = ops::absent_along(mesh, layouts(tensor));
        const auto axis = std::ranges::find(absent, true);
        if (axis == absent.end()) continue;
        const auto& name = mesh.axes()[static_cast<size_t>(axis - absent.begin())].name;
        throw Error(ErrorCode::kUnsupported,
                    fmt::format("the planner of ops has no pipeline stages, and devices along mesh "
                                "axis '{}' have different layers",
                                name))
            .help("leave out the axis of stages: every stage runs its layers by the same plan");
      }
    }
  }
}

}  // namespace

std::string name_in_layer(const std::string& tensor) {
  size_t end = tensor.find('.');
  while (end != tensor.npos) {
    const size_t begin = end + 1;
    end = tensor.find('.', begin);
    const bool is_inside = end != tensor.npos;
    if (is_inside && mapping::is_number(std::string_view(tensor).substr(begin, end - begin)))
      return tensor.substr(end + 1);
  }
  return tensor;
}

std::vector<LayerProgram> op_programs(const Model& model, std::span<const TensorSpec> tensors,
                                      const LayoutOf& layouts, const mesh::Mesh& mesh,
                                      const PassTokens& pass) {
  refuse_stages(model, layouts, mesh);
  const WholeLayouts whole(tensors);
  const LayoutOf whole_layouts = whole.of();
  const bool has_encoder = std::ranges::any_of(model.layers, &Layer::of_prompt);
  const bool causal = is_causal(model);
  std::vector<LayerProgram> programs;
  std::map<std::string, Shape> passed;
  std::set<std::string> absent;  // made by towers
  Stream stream;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    const LayerFlow walked = flow(model, i, whole_layouts, whole.mesh(), {}, stream);
    if (layer.is_vision_encoder) {
      absent.insert(layer.passes.begin(), layer.passes.end());
      continue;
    }
    Lowering lowering(model, layer, tensors, layouts, mesh, pass);
    for (const auto& [name, shape] : passed) lowering.enter(name, shape);
    for (const std::string& name : absent) {
      if (!passed.contains(name)) lowering.enter_absent(name);
    }
    if (layer.part == Layer::Part::kEnd && causal) {
      for (const auto& [name, shape] : passed) lowering.read_last_position(name);
    }
    for (const ops::Step& step : walked.steps) lowering.add(step, has_encoder);
    passed = lowering.passed();
    LayerProgram made = lowering.finish();
    const auto same = std::ranges::find_if(programs, [&made](const LayerProgram& known) {
      return is_equal(known.program, made.program) && known.names == made.names;
    });
    if (same != programs.end()) {
      same->layers.push_back(i);
      continue;
    }
    made.layers = {i};
    programs.push_back(std::move(made));
  }
  return programs;
}

}  // namespace shardtool::model

#include "lib/plan/placement/moves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/plan/placement/redistribute.h"

namespace shardtool::plan {
namespace {

using Kind = Placement::Kind;

i64 size_of(const mesh::Mesh& mesh, const std::vector<int>& axes) {
  i64 product = 1;
  for (const int a : axes) product *= mesh.axes()[static_cast<size_t>(a)].size;
  return product;
}

/// Payload of a collective whose devices have `local` bytes afterwards.
i64 payload_of(Move move, i64 local, i64 devices) {
  if (!collective_of(move)) return 0;
  return move == Move::kReduceScatter ? local * devices : local;
}

/// Steps of the cheapest path. Bytes per device are rounded up once for the whole path.
std::vector<OperandMove> by_path(const ActionSet& set, size_t i, const Redistribution& way) {
  const Operand& operand = set.operands[i];
  std::vector<OperandMove> moves;
  i64 elements = 0, counted = 0;
  for (const RedistributionStep& step : way.steps) {
    elements += step.elements;
    const i64 bytes = ceil_div(elements * operand.element_bytes, set.mesh.size());
    i64 local = *element_count(operand.shape);
    for (int d = 0; d < static_cast<int>(operand.shape.size()); ++d) {
      local /= parts(step.after, set.mesh, d);
    }
    moves.push_back(
        {i, step.move, step.mesh_axes, step.to_axis, bytes - counted,
         payload_of(step.move, local * operand.element_bytes, size_of(set.mesh, step.mesh_axes))});
    counted = bytes;
  }
  return moves;
}

/// One move per mesh axis, for uneven cuts and the source system's generations.
std::vector<OperandMove> by_axis(const ActionSet& set, size_t i, const std::vector<Placement>& to) {
  const Operand& operand = set.operands[i];
  std::vector<OperandMove> moves;
  for (const AxisPrice& step : axis_prices(set, i, to)) {
    const Move move = move_between(operand.on[step.mesh_axis], to[step.mesh_axis]);
    if (move == Move::kNothing) continue;
    const Placement& needed = to[step.mesh_axis];
    const int axis = static_cast<int>(step.mesh_axis);
    const bool has_part = move == Move::kAllToAll;
    const i64 devices = set.mesh.axes()[step.mesh_axis].size;
    const i64 payload = has_part ? ceil_div(step.owned, devices) : step.owned;
    moves.push_back({i,
                     move,
                     {axis},
                     needed.is(Kind::kSharded) ? needed.axis : -1,
                     step.bytes,
                     collective_of(move) ? payload : 0});
  }
  return moves;
}

}  // namespace

std::vector<OperandMove> moves_of(const ActionSet& set, const Action& action) {
  std::vector<OperandMove> all;
  for (size_t i = 0; i < set.operands.size(); ++i) {
    std::vector<Placement> to;
    for (const size_t row : action.rows) to.push_back(set.rows[row].operands[i]);
    const auto way = path_of(set, i, to);
    const auto moves = way ? by_path(set, i, *way) : by_axis(set, i, to);
    all.insert(all.end(), moves.begin(), moves.end());
  }
  return all;
}

std::optional<Collective> collective_of(const OperandMove& move, const mesh::Mesh& mesh,
                                        i64 domain) {
  const auto op = collective_of(move.move);
  if (!op || size_of(mesh, move.mesh_axes) < 2) return std::nullopt;
  mesh::Over over;
  for (const int a : move.mesh_axes) over.push_back({mesh.axes()[static_cast<size_t>(a)].name});
  return Collective{*op, group_along(mesh, over, domain), move.payload};
}

std::string to_string(const OperandMove& move, const ActionSet& set) {
  std::vector<std::string_view> names;
  for (const int a : move.mesh_axes) names.push_back(set.mesh.axes()[static_cast<size_t>(a)].name);
  std::string text = fmt::format("{} {} over {}", to_string(move.move),
                                 set.operands[move.operand].name, fmt::join(names, ", "));
  if (move.to_axis >= 0) text += fmt::format(" to axis {}", move.to_axis);
  return text;
}

}  // namespace shardtool::plan

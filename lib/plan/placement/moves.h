#pragma once

#include <vector>

#include "lib/plan/placement/solver.h"

namespace shardtool::plan {

/// One move of an operand for an op, in every group along `mesh_axes` at once.
struct OperandMove {
  size_t operand = 0;
  Move move = Move::kNothing;
  std::vector<int> mesh_axes;
  int to_axis = -1;  ///< tensor axis that is cut afterwards; -1: none
  i64 bytes = 0;     ///< received by one device
  i64 payload = 0;   ///< Collective::payload_bytes; 0 for moves inside a device
};

/// Returns the moves that an action needs, operand by operand. Their bytes add up to
/// `action.bytes`, except for kD, which also prices slices and kept copies.
std::vector<OperandMove> moves_of(const ActionSet& set, const Action& action);

/// Returns the collective of a move, or nullopt if it stays inside a device. `domain` is the number
/// of devices of a domain of the fabric (group_along).
std::optional<Collective> collective_of(const OperandMove& move, const mesh::Mesh& mesh,
                                        i64 domain);

/// Formats as "all_reduce y over tp", "slice x over tp to axis 0".
std::string to_string(const OperandMove& move, const ActionSet& set);

}  // namespace shardtool::plan

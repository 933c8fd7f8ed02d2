#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/planning/op_policy.h"
#include "lib/api/transform.h"
#include "lib/mesh/mesh.h"
#include "lib/plan/collective/collective_time.h"
#include "lib/plan/collective/hardware_profile.h"
#include "lib/plan/placement/moves.h"
#include "lib/plan/reshard_report.h"

namespace shardtool::model {
struct Graph;
}

namespace shardtool::api {

struct OpPlanOptions {
  std::vector<std::string> sources;
  MappingChoice mapping;
  std::shared_ptr<const model::Graph> graph;  ///< user's graph; null: the model family's
  i64 batch = 1;
  i64 prompt_len = 1;  ///< tokens per sequence
  OpPolicies policies;
  std::optional<plan::HardwareProfile> hardware;  ///< without it there are no times
  bool compares = false;                          ///< also the optimum of all ops together
};

/// One move of an operand before an op.
struct OpMove {
  std::string operand;
  std::string move;  ///< "all_reduce"
  std::string axes;  ///< "tp", or "ep*tp"
  int to_axis = -1;  ///< axis of the operand that is cut afterwards; -1: none
  i64 bytes = 0;     ///< received by a device
  i64 payload = 0;   ///< plan::Collective::payload_bytes; 0: inside a device
  double us = 0;     ///< with hardware
};

struct OpOperand {
  std::string name;
  Shape shape;
  std::vector<plan::Placement> on;     ///< per mesh axis, before the op
  std::vector<plan::Placement> needs;  ///< as the op reads it
};

struct OpLine {
  std::string op;    ///< "linear"
  std::string made;  ///< names of its results
  std::vector<OpOperand> operands;
  std::vector<plan::Placement> result;
  std::vector<OpMove> moves;
  i64 bytes = 0;  ///< price of the moves: received by a device
  double us = 0;
  std::vector<plan::CandidateLine> candidates;
};

/// Layers that run alike.
struct OpLayers {
  std::string block;         ///< "start", "decoder", "end"
  std::vector<i64> numbers;  ///< of the layers; -1 outside of a stack's layers
  std::vector<OpLine> ops;
  i64 bytes = 0;  ///< of one layer
  double us = 0;
};

/// Equal collectives of the whole pass.
struct OpCollective {
  std::string axes;
  std::string op;
  i64 count = 0;
  i64 payload = 0;
  i64 bytes = 0;  ///< received by a device, per call
  double us = 0;  ///< per call
};

/// One op that runs otherwise in the optimum.
struct OpDifference {
  std::string block;
  std::vector<i64> layers;
  std::string op;
  std::string made;
  std::string chosen;   ///< "tp: (R, S(0)) -> S(2)"
  std::string optimum;  ///< the same of the optimum
  i64 chosen_bytes = 0;
  i64 optimum_bytes = 0;
};

struct OpComparison {
  i64 chosen_bytes = 0;   ///< with exact bytes, whatever the generation
  i64 optimum_bytes = 0;  ///< the fewest of all plans with the same allowed moves
  std::vector<OpDifference> ops;
};

struct OpPlanReport {
  std::string source;
  std::string family;
  mesh::Mesh mesh;
  i64 batch = 1;
  i64 prompt_len = 1;
  std::string solver;
  std::string generation;  ///< "exact", or "A" to "D"
  std::string profile;     ///< empty without hardware
  std::vector<OpLayers> layers;
  std::vector<OpCollective> collectives;  ///< sorted by axes, op and payload
  i64 bytes = 0;                          ///< received by a device in the whole pass
  double us = 0;
  std::optional<OpComparison> comparison;
  std::vector<std::string> warnings;
};

/// Plans how every op of a model's forward pass runs: where its operands must be, which moves bring
/// them there, and their bytes. Reads headers only. Throws the errors of opening a checkpoint and
/// choosing a mapping, kUnsupported for a model without a graph, and kPlacement when a policy
/// refuses an op.
OpPlanReport plan_ops(const OpPlanOptions& options);

}  // namespace shardtool::api

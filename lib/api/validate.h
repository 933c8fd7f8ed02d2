#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/transform.h"
#include "lib/check/finding.h"
#include "lib/comm/engine_choice.h"
#include "lib/engine/diagnosis/verdict.h"
#include "lib/model/graph/graph.h"

namespace shardtool::kernels {
class Accelerator;
}

namespace shardtool::api {

struct ValidateOptions {
  /// An output of ours, or files that names number by ranks, with a mapping and a reference.
  std::vector<std::string> sources;
  std::string reference;                      ///< the whole model, or empty: the shards, merged
  MappingChoice mapping;                      ///< nothing chosen: the manifest's
  std::shared_ptr<const model::Graph> graph;  ///< of one's own; null: of the model's family
  bool quick = false;                         ///< headers and the field alone
  bool ordered = false;  ///< also in f32 and bf16, the whole model summed as the shards: a report
  bool native = false;   ///< also in the weights' type, as engines compute: a report
  std::string golden;    ///< a file of what another implementation computed, or empty
  std::uint64_t seed = 1;
  i64 tokens = 8;                ///< of the runs in floats
  double require_coverage = 0;   ///< percent of the tensors that some result must depend on
  bool compares_values = false;  ///< residues of values, not of bits: for another dtype
  /// Who plays the devices: this process all of them (embedded), or each process of a launch some.
  /// nccl computes the products on GPUs.
  comm::EngineChoice engine;
  bool gpu_virtual = false;  ///< instead: this process plays all devices, on a GPU
  exec::Resources resources;
  /// Computes the products, whatever the engine, and instead of the GPU that it would open.
  kernels::Accelerator* accelerator = nullptr;
};

/// One line of the verdict.
struct ValidateTier {
  std::string tier;     ///< "V0" to "V5"
  std::string name;     ///< "manifest" or "headers", "hashes", "field", "f64", "ordered f32", ...
  std::string verdict;  ///< "pass", "fail", "undecided", "not run"; of V3 "differs" and not "fail"
  i64 checked = 0;
  i64 mismatches = 0;
  double worst = 0;
  double rounding = 0;                      ///< of V4: the whole model's error, relative
  i64 reordered = 0;                        ///< values inside layers whose result is the same
  std::optional<engine::Fault> first = {};  ///< of V3: where bits of a result first differ

  /// Of V3: that every bit of every value is equal.
  bool is_proof() const { return verdict == "pass" && reordered == 0; }
};

struct ValidateReport {
  std::string verdict;                    ///< "pass", "fail" or "undecided"
  std::string engine;                     ///< who played the devices
  std::string backend = "none";           ///< what multiplied with the weights: "cpu" or "cuda"
  std::vector<std::string> accelerators;  ///< the GPU of every process; empty: CPUs
  /// Of V4 on accelerators, every process' library of products, or why it has none.
  std::vector<std::string> libraries;
  engine::ComputedBy native;  ///< the products of V4 on accelerators
  std::string native_type;    ///< of V4: that values are rounded to, "BF16"; empty: not run
  std::string family;
  std::string mesh;
  i64 ranks = 0;
  i64 layers = 0;
  bool has_reference = false;
  std::vector<ValidateTier> tiers;
  std::vector<check::Finding> findings;  ///< of the headers, and of bytes against the manifest
  std::vector<engine::Fault> faults;     ///< in the order of the layers, the field's first
  i64 reordered = 0;  ///< values inside layers that differ while every result is the same
  std::vector<engine::CollectiveRow> collectives;
  std::vector<engine::OddWeight> odd_weights;
  /// Against the reference, or without one against the manifest's hashes; nothing where the model
  /// was not run, and of shards without a manifest and a reference. Rank -1: a tensor whose shards
  /// are each as recorded and together are not what was split.
  std::optional<engine::ComparedBytes> bytes;
  i64 parts = 0;               ///< what devices have of tensors, compared or not
  i64 undecidable_tokens = 0;  ///< choices of experts that rounding could have made otherwise
  std::vector<std::string> untested;    ///< tensors that nothing depends on
  double coverage = 0;                  ///< percent of the shards' tensors
  std::string digest;                   ///< of what the shards computed in the field, 16 hex digits
  std::vector<std::string> not_proved;  ///< by a pass, of what one might take it to prove
  std::vector<std::string> notes;       ///< what this run cannot see, and why
  i64 bytes_read = 0;
  double seconds = 0;

  bool passes() const { return verdict == "pass"; }
};

/// Runs the model on the shards and as a whole, and compares. Throws what opening throws, kConfig
/// without a config.json, kUnsupported for a family without a graph or shards that no rule of
/// tensor parallelism can compute with, kPeerLost when a process is lost, kEngineMissing when a GPU
/// is missing, kDeviceFailed when one fails, kInterrupted. Every process of a launch calls it and
/// gets the same report, but for what is behind a fault: rank 0 alone reads the bytes again.
ValidateReport validate(const ValidateOptions& options);

}  // namespace shardtool::api

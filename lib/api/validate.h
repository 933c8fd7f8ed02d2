#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/transform.h"
#include "lib/check/finding.h"
#include "lib/comm/engine_choice.h"
#include "lib/engine/diagnosis/verdict.h"

namespace shardtool::kernels {
class Accelerator;
}

namespace shardtool::model {
struct Graph;
}

namespace shardtool::api {

/// Limit on ValidateOptions::tokens.
inline constexpr i64 kMostTokens = 4096;

struct ValidateOptions {
  /// An output with a manifest, or files numbered by rank with a mapping and a reference.
  std::vector<std::string> sources;
  std::string reference;                      ///< the unsharded model; empty: the merged shards
  MappingChoice mapping;                      ///< default: the manifest's
  std::shared_ptr<const model::Graph> graph;  ///< user's graph; null: the model family's
  bool quick = false;                         ///< headers and the field only
  /// Also in f32 and bf16, the unsharded model summed like the shards: a report.
  bool ordered = false;
  bool native = false;  ///< also in the weights' dtype, as engines compute: a report
  std::string golden;   ///< file with results of another implementation, or empty
  std::uint64_t seed = 1;
  i64 tokens = 8;               ///< of the runs in floats
  double require_coverage = 0;  ///< percent of the tensors that some result must depend on
  /// Compares residues of values, not of bits: for another dtype. Where the manifest records that a
  /// tensor was cast or unpacked, the reference is changed in the same way and its bytes compared.
  bool compares_values = false;
  /// Players of the devices: this process plays all (embedded), or each process of a launch some.
  /// nccl computes the products on GPUs.
  comm::EngineChoice engine;
  /// Runs this share of the layers and leaves a record of its report in `verdicts`, a folder or
  /// s3://bucket/prefix. Only in one process, and without `golden`.
  std::optional<Share> share;
  std::string verdicts;
  bool gpu_virtual = false;  ///< instead: this process plays all devices, on the GPUs that it sees
  exec::Resources resources;
  /// Compute, whatever the engine, instead of the GPUs that it would open.
  std::vector<kernels::Accelerator*> accelerators = {};
};

/// One line of the verdict.
struct ValidateTier {
  engine::TierKind kind = engine::TierKind::kField;
  engine::Outcome outcome = engine::Outcome::kNotRun;
  i64 checked = 0;
  i64 mismatches = 0;
  double worst = 0;
  double rounding = 0;                      ///< for V4: the unsharded model's relative error
  i64 reordered = 0;                        ///< reordered values inside layers with equal results
  std::optional<engine::Fault> first = {};  ///< for V3: first result with differing bits

  /// For V3: true if every bit of every value is equal.
  bool is_proof() const { return outcome == engine::Outcome::kPass && reordered == 0; }
};

struct ValidateReport {
  engine::Outcome outcome = engine::Outcome::kFail;
  std::string engine;                     ///< engine that ran the devices
  std::string backend = "none";           ///< device of the products: "cpu" or "cuda"
  std::vector<std::string> accelerators;  ///< GPUs of every process; empty: CPUs
  /// For V4 on accelerators: every process' product library, or why it has none.
  std::vector<std::string> libraries;
  engine::ComputedBy native;  ///< products of V4 on accelerators
  std::string native_type;    ///< for V4: dtype that values are rounded to, "BF16"; empty: not run
  std::string family;
  std::string mesh;
  i64 ranks = 0;
  i64 layers = 0;
  i64 tensors = 0;             ///< of the shards
  std::optional<Share> share;  ///< of which this is the report
  std::string ran;             ///< layers of the share: "decoder 3 to decoder 9"
  std::vector<int> missing;    ///< shares that had not ended when this one had
  int joined = 0;              ///< number of shares whose reports this one joins
  bool has_reference = false;
  std::vector<ValidateTier> tiers;
  std::vector<check::Finding> findings;  ///< of the headers, and of bytes that differ from the
                                         ///< manifest
  std::vector<engine::Fault> faults;     ///< in layer order, the field's first
  i64 reordered = 0;  ///< differing values inside layers whose results are all equal
  std::vector<engine::CollectiveRow> collectives;
  std::vector<engine::OddWeight> odd_weights;
  /// Comparison with the reference or, without one, with the manifest's hashes. Nullopt if the
  /// model was not run, and for shards with neither. Rank -1: a tensor whose shards match their
  /// records but differ as a whole from the split tensor.
  std::optional<engine::ComparedBytes> bytes;
  i64 parts = 0;                        ///< shards of all tensors and ranks, compared or not
  i64 undecidable_tokens = 0;           ///< expert choices that rounding could have changed
  std::vector<std::string> untested;    ///< tensors that no result depends on
  double coverage = 0;                  ///< percentage of the shards' tensors
  std::string digest;                   ///< engine::Verdict::digest, 16 hex digits
  std::vector<std::string> not_proved;  ///< claims that a pass does not prove
  std::vector<std::string> notes;       ///< limits of this run, with reasons
  i64 bytes_read = 0;
  double seconds = 0;

  bool passes() const { return outcome == engine::Outcome::kPass; }
};

/// Runs the model on the shards and unsharded, and compares. Throws the errors of opening, kConfig
/// without a config.json, kUnsupported for a family without a graph or for shards that no rule of
/// tensor parallelism covers, kPeerLost if a process is lost, kEngineMissing if a GPU is missing,
/// kDeviceFailed if one fails, kInterrupted. Every process of a launch calls it and gets the same
/// report, except for the diagnosis of faults: only rank 0 reads the bytes again. If a process
/// cannot open its inputs, all throw the error of the lowest such process, except for those whose
/// own findings explain it.
///
/// A share also throws kUsage for `golden` and for a launch of several processes, and kOtherRun if
/// `verdicts` has a share of another validation. It leaves no record if the shards could not be
/// opened or run; the report says why.
ValidateReport validate(const ValidateOptions& options);
/// Does the same. A share that finds the records of all others returns joined_verdict, the report
/// on all layers; the reports of those before it say which shares are missing.
ValidateReport validate_and_join(const ValidateOptions& options);

/// True if shares of a validation have left records in this folder, or below s3://bucket/prefix.
bool has_verdicts(const std::string& folder);
/// Numbers of the shares that have no record in a folder that has_verdicts.
std::vector<int> missing_verdicts(const std::string& folder);
/// Joins the reports of all shares in a folder that has_verdicts. Counts, digests, and faults of
/// the field are those of one run of all layers. Throws kShareMissing, kOtherRun if the records are
/// of different validations, and kManifestInvalid for a damaged one.
ValidateReport joined_verdict(const std::string& folder);

}  // namespace shardtool::api

#include "lib/api/validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>

#include "kernels/encode/encode.h"
#include "lib/api/check.h"
#include "lib/api/dequantize/recorded_values.h"
#include "lib/api/proof/bound_side.h"
#include "lib/api/proof/config_difference.h"
#include "lib/api/proof/golden_tier.h"
#include "lib/api/proof/joined_report.h"
#include "lib/api/proof/reference_headers.h"
#include "lib/api/proof/validate_engine.h"
#include "lib/api/proof/validate_inputs.h"
#include "lib/api/proof/validation_run.h"
#include "lib/api/proof/verdict_folder.h"
#include "lib/api/transfer/sources/recorded_bytes.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/comm/agreement.h"
#include "lib/engine/diagnosis/diagnosis.h"
#include "lib/engine/validation.h"
#include "lib/engine/weights/padding.h"
#include "lib/model/graph/graph_list.h"
#include "lib/model/graph/requirement.h"

namespace shardtool::api {
namespace {

using engine::Outcome;
using engine::TierKind;

/// Rules of `check` for shards without a manifest that the whole model's shapes judge better.
constexpr std::array kJudgedByReference{check::CheckRule::kMissingRank,
                                        check::CheckRule::kShardMissing,
                                        check::CheckRule::kRankShape, check::CheckRule::kRankDtype};

/// Dtype of activations in engines: that of most plain weights, by elements.
Dtype activation_type(const LogicalCheckpoint& checkpoint) {
  std::map<Dtype, i64> elements;
  for (const LogicalTensor& tensor : checkpoint.tensors) {
    if (!kernels::is_float_storage(tensor.spec.dtype)) continue;
    elements[tensor.spec.dtype] += element_count(tensor.spec.shape).value_or(0);
  }
  const auto most =
      std::ranges::max_element(elements, {}, [](const auto& one) { return one.second; });
  return most == elements.end() ? Dtype::kF32 : most->first;
}

/// Reuses the diagnosis of one number system for the same step in another.
void copy_diagnosis(const engine::Fault& from, engine::Fault& to) {
  if (from.layer_index != to.layer_index || from.step != to.step) return;
  to.diagnosis = from.diagnosis;
  to.tensor = from.tensor;
  to.rank = from.rank;
}

SideFiles files_of(const ValidateInputs& inputs) {
  if (inputs.foreign) return shard_files(*inputs.foreign);
  if (!inputs.shards.is_sharded()) return whole_files(inputs.shards);
  return shard_files(inputs.shards, inputs.mapping);
}

class Validating {
 public:
  explicit Validating(const ValidateOptions& options) : options_(options) {
    inputs_.mapping = options.mapping;
  }
  ValidateReport run();

 private:
  bool all_can_run();
  void prepare();
  void open();
  void check_headers();
  void bind_sides();
  engine::ValidationOptions engine_options();
  void add_verdict(const engine::Verdict& verdict);
  void hold_bytes(const engine::Verdict& verdict, comm::Communicator& comm);
  void compare_unread_bytes(const engine::Verdict& verdict, comm::Communicator& comm);
  void add_coverage(const engine::Verdict& verdict);
  void diagnose(const engine::Verdict& verdict);
  void compare_configs();
  void begin_share();
  void run_model();
  void compare_sides();
  void attempt(void (Validating::*part)());
  void note_not_run(const Error& reason);
  void decide();

  const ValidateOptions& options_;
  std::optional<ValidateEngine> engine_;
  ValidateInputs inputs_;
  std::unique_ptr<BoundSide> whole_bound_, shards_bound_;
  engine::RecordedHashes recorded_;  ///< without a reference
  ValidateReport report_;
  std::optional<Error> obstacle_;  ///< why the model was not run; the findings explain it
  std::string run_;                ///< of a share whose model could be bound
};

/// Opens the inputs. Shards that cannot be opened are findings if `check` can name the problem.
void Validating::open() {
  report_.has_reference = !options_.reference.empty();
  report_.engine = engine_name(options_);
  std::optional<ForeignFiles> foreign;
  try {
    foreign = open_shards(options_, inputs_);
  } catch (const Error& error) {
    check_headers();
    if (report_.findings.empty()) throw;
    note_not_run(error);
    return;
  }
  open_model(options_, std::move(foreign), inputs_);
}

void Validating::check_headers() {
  CheckOptions check_options;
  check_options.sources = options_.sources;
  check_options.mapping.emplace().config = inputs_.mapping.config;
  if (inputs_.foreign) {
    check_options.mapping = inputs_.mapping;
    // These rules guess whole shapes, which are known here.
    for (const check::CheckRule rule : kJudgedByReference) {
      check_options.ignore.emplace_back(check::rule_info(rule).id);
    }
  }
  const CheckReport checked = check(check_options);
  for (const check::Finding& finding : checked.findings) {
    if (finding.severity == check::Severity::kError) report_.findings.push_back(finding);
  }
  if (inputs_.foreign) {
    const auto& misfits = inputs_.foreign->misfits;
    report_.findings.insert(report_.findings.end(), misfits.begin(), misfits.end());
  }
  if (report_.findings.empty())
    report_.findings = wrong_constants(inputs_.shards, options_.resources);
  if (inputs_.reference) {
    compare_headers(*inputs_.reference, inputs_.proved(), inputs_.dropped(),
                    options_.compares_values, report_.findings);
  }
  const auto& parts = inputs_.proved().parts;  // empty: they could not be opened
  const bool has_manifest = parts.empty() || parts.front().manifest;
  ValidateTier tier{has_manifest ? TierKind::kManifest : TierKind::kHeaders,
                    report_.findings.empty() ? Outcome::kPass : Outcome::kFail};
  tier.checked = checked.tensors;
  tier.mismatches = std::ssize(report_.findings);
  report_.tiers.push_back(std::move(tier));
}

void Validating::bind_sides() {
  std::string why;
  inputs_.config = inputs_.config->recording();
  const auto graph = model::find_graph(*inputs_.config, options_.graph, why);
  if (graph == nullptr) throw no_graph(why, options_.graph != nullptr);
  report_.family = graph->family;
  whole_bound_ = std::make_unique<BoundSide>(
      graph, *inputs_.config, whole_files(inputs_.reference ? *inputs_.reference : inputs_.shards));
  shards_bound_ = std::make_unique<BoundSide>(graph, *inputs_.config, files_of(inputs_));
  report_.mesh = to_string(shards_bound_->side().mesh);
  report_.ranks = shards_bound_->side().mesh.size();
  report_.layers = std::ranges::count_if(shards_bound_->side().model->layers,
                                         [](const model::Layer& one) { return one.number >= 0; });
}

engine::ValidationOptions Validating::engine_options() {
  engine::ValidationOptions options;
  options.seed = options_.seed;
  const bool by_value =
      options_.compares_values || shards_bound_->files().has_divided_bias() ||
      whole_bound_->has_packed_weights() || shards_bound_->has_packed_weights() ||
      (inputs_.reference && has_other_dtypes(*inputs_.reference, inputs_.proved()));
  options.map = by_value ? kernels::NumberMap::kValue : kernels::NumberMap::kBits;
  options.compares_bytes = inputs_.reference.has_value();
  if (!inputs_.reference) {
    recorded_ = recorded_hashes(inputs_.shards, shards_bound_->files().is_gathered);
    options.recorded = &recorded_;
  }
  if (options_.share) options.share = {options_.share->number, options_.share->of};
  options.with_f64 = !options_.quick;
  options.with_ordered = options_.ordered;
  if (options_.native) {
    options.native = activation_type(inputs_.proved());
    report_.native_type = to_string(*options.native);
  }
  options.length = options_.tokens;
  options.resources = options_.resources;
  return options;
}

void Validating::add_coverage(const engine::Verdict& verdict) {
  const size_t all = inputs_.proved().tensors.size();
  report_.tensors = static_cast<i64>(all);
  for (size_t t = 0; t < all; ++t) {
    if (!verdict.tested.contains(t))
      report_.untested.push_back(inputs_.proved().tensors[t].spec.name);
  }
  report_.coverage = coverage_of(report_);
}

void Validating::add_verdict(const engine::Verdict& verdict) {
  for (const engine::TierVerdict& tier : verdict.tiers) {
    ValidateTier row{tier.kind,  tier.outcome,  tier.checked,  tier.mismatches,
                     tier.worst, tier.rounding, tier.reordered};
    // Findings of an order-matched run are reported beside the verdict and are no fault.
    if (!is_ordered(row.kind)) {
      report_.faults.insert(report_.faults.end(), tier.faults.begin(), tier.faults.end());
    } else if (!tier.faults.empty()) {
      row.first = tier.faults.front();
    }
    if (tier.kind == TierKind::kField) report_.reordered = tier.reordered;
    report_.tiers.push_back(std::move(row));
  }
  if (options_.share) report_.ran = verdict.ran;
  report_.collectives = verdict.collectives;
  report_.native = verdict.native;
  report_.undecidable_tokens = verdict.undecidable_tokens;
  report_.odd_weights = verdict.odd_weights;
  if (!verdict.realigned.empty()) {
    report_.notes.push_back(fmt::format(
        "the input of {} is cut in another way than its columns, so that it is gathered first: "
        "engines multiply it as it is",
        verdict.realigned));
  }
  report_.parts = shards_bound_->parts();
  if (inputs_.reference) report_.bytes = verdict.bytes;
  report_.digest = fmt::format("{:016x}", verdict.digest);
  report_.bytes_read = verdict.bytes_read;
  add_coverage(verdict);
}

/// Without a reference, compares the stored bytes with the manifest's hashes.
void Validating::hold_bytes(const engine::Verdict& verdict, comm::Communicator& comm) {
  engine::RecordedBytes recorded = verdict.recorded;
  report_.bytes_read += hold_unread(inputs_.shards, options_, comm, recorded);
  engine::ComparedBytes bytes;
  report_.parts = 0;
  for (size_t t = 0; t < inputs_.shards.tensors.size(); ++t) {
    const i64 parts = std::ssize(inputs_.shards.tensors[t].ranks);
    report_.parts += parts;
    if (verdict.judged.contains(t)) bytes.parts += parts;
  }
  for (const auto& one : recorded.different) bytes.different.push_back({one.tensor, one.rank});
  bytes.differing = std::ssize(bytes.different);
  const auto findings = findings_of(inputs_.shards, recorded);
  report_.findings.insert(report_.findings.end(), findings.begin(), findings.end());
  ValidateTier tier{TierKind::kHashes, findings.empty() ? Outcome::kPass : Outcome::kFail};
  tier.checked = bytes.parts;
  tier.mismatches = bytes.differing;
  report_.tiers.insert(report_.tiers.begin() + 1, std::move(tier));
  report_.bytes = std::move(bytes);
}

/// Compares the bytes of tensors that no result depends on: only they prove these tensors right.
void Validating::compare_unread_bytes(const engine::Verdict& verdict, comm::Communicator& comm) {
  const i64 before = report_.bytes->differing;
  ValidateTier tier{TierKind::kBytes, Outcome::kPass};
  tier.checked =
      compare_unread(inputs_.proved(), *inputs_.reference, options_, comm, verdict, *report_.bytes);
  if (tier.checked == 0) return;
  tier.mismatches = report_.bytes->differing - before;
  if (tier.mismatches > 0) tier.outcome = Outcome::kFail;
  report_.tiers.insert(report_.tiers.begin() + 1, std::move(tier));
}

/// Diagnoses the bytes behind the first faults, and reordered values.
void Validating::diagnose(const engine::Verdict& verdict) {
  constexpr size_t kMostDiagnosed = 3;
  constexpr size_t kMostReordered = 2;
  const size_t faults = std::min(kMostDiagnosed, report_.faults.size());
  for (size_t i = 0; i < faults; ++i) {
    engine::diagnose(whole_bound_->side(), shards_bound_->side(), report_.faults[i]);
  }
  for (size_t i = faults; i < report_.faults.size(); ++i) {
    for (size_t told = 0; told < faults; ++told)
      copy_diagnosis(report_.faults[told], report_.faults[i]);
  }
  if (verdict.tiers.empty() || !report_.faults.empty()) return;
  for (const std::string& text : engine::odd_padding(shards_bound_->side())) {
    report_.notes.push_back("function equal, layout differs: " + text);
  }
  const auto& layers = verdict.tiers.front().reordered_layers;
  for (size_t i = 0; i < std::min(kMostReordered, layers.size()); ++i) {
    for (const std::string& text :
         engine::differences(whole_bound_->side(), shards_bound_->side(), layers[i])) {
      report_.notes.push_back("function equal, layout differs: " + text);
    }
  }
}

/// Compares what the run read of the shards' config.json with the reference's, unless one was named
/// for both. The shards alone would compute with their own.
void Validating::compare_configs() {
  if (!inputs_.reference || !options_.mapping.config.empty()) return;
  const auto own = inputs_.reference->config();
  if (!own) return;
  if (own->model_type() != inputs_.config->model_type()) {
    report_.notes.push_back(fmt::format(
        "config.json of the shards is of '{}', that of the reference of '{}': what they say was "
        "not compared",
        inputs_.config->model_type(), own->model_type()));
    return;
  }
  const model::Model& ran = *shards_bound_->side().model;
  auto difference = config_difference(ran.config, model::part_of(*own, ran.graph->config_part));
  if (!difference) return;
  report_.findings.push_back(std::move(*difference));
  report_.tiers.front().outcome = Outcome::kFail;
  ++report_.tiers.front().mismatches;
}

/// Records wrong headers as the verdict, since no tier could run.
void Validating::note_not_run(const Error& reason) {
  report_.tiers.resize(1);
  report_.tiers.push_back({TierKind::kField});
  if (!options_.quick) report_.tiers.push_back({TierKind::kF64});
  for (const TierKind kind : {TierKind::kOrderedF32, TierKind::kOrderedBf16}) {
    if (options_.ordered) report_.tiers.push_back({kind});
  }
  std::string why = reason.message();
  if (!reason.tensor_name().empty()) why = reason.tensor_name() + ": " + why;
  report_.notes.push_back("the model could not be run: " + why);
  obstacle_ = reason;
}

/// Computes the verdict. The field decides; an undecided tier is no pass.
void Validating::decide() {
  if (!report_.has_reference) {
    report_.not_proved.push_back(
        "that the shards hold the original's weights: no --reference was given, so that they were "
        "held against their own manifest and against themselves merged");
  }
  if (inputs_.foreign) {
    report_.notes.push_back(
        "the shards have no manifest: the mapping says which shard each rank has and how often a "
        "bias counts, so that a wrong mapping looks like wrong shards; what no result depends on "
        "is not proved");
  }
  if (shards_bound_ && !shards_bound_->files().gathered.empty()) {
    report_.notes.push_back(fmt::format(
        "weights are gathered along {} before a layer computes, so that all ranks along "
        "it see a wrong shard",
        fmt::join(shards_bound_->files().gathered, ", ")));
  }
  if (!report_.odd_weights.empty()) {
    report_.notes.push_back("weights with NaN or infinities have no value to compare in f64");
  }
  report_.outcome = outcome_of(report_, options_.share ? 0 : options_.require_coverage);
  if (!report_.passes() && options_.compares_values && inputs_.reference) {
    const auto note = note_on_rounded(*inputs_.reference, inputs_.proved());
    if (!note.empty()) report_.notes.push_back(note);
  }
}

/// Runs a part, which may fail for what the findings name.
void Validating::attempt(void (Validating::*part)()) {
  try {
    (this->*part)();
  } catch (const Error& error) {
    const bool is_explained = is_mapping_error(error) || is_input_error(error);
    if (report_.findings.empty() || !is_explained) throw;
    note_not_run(error);
  }
}

/// Opens the inputs and binds the model. Throws what keeps this process from running it.
void Validating::prepare() {
  open();
  if (!obstacle_) {
    check_headers();
    attempt(&Validating::bind_sides);
  }
  if (obstacle_) throw *obstacle_;
}

/// Returns false if this process cannot run the model for what its own findings name. Throws the
/// error of the lowest process that cannot: the files of each may be others.
bool Validating::all_can_run() {
  try {
    comm::all_do(*engine_->comm, [this] { prepare(); });
    return true;
  } catch (const Error&) {
    if (!obstacle_) throw;
    return false;
  }
}

/// Names the run that this share is of.
void Validating::begin_share() {
  if (!options_.share) return;
  report_.share = options_.share;
  run_ = validation_run(inputs_, options_, *shards_bound_->side().model);
  VerdictFolder(options_.verdicts).begin(run_, *options_.share);
}

/// Runs the model with the other processes. They learn an error of this one even if its findings
/// explain it, because they wait for its share of the run.
void Validating::run_model() {
  comm::run_or_abort(*engine_->comm, [this] { compare_sides(); });
}

void Validating::compare_sides() {
  begin_share();
  const ValidateEngine& engine = *engine_;
  report_.backend = engine.backend;
  report_.accelerators = engine.accelerators;
  report_.libraries = engine.libraries;
  engine::ValidationOptions options = engine_options();
  options.accelerators = engine.used;
  options.uses_library = engine.has_library;
  const engine::Verdict verdict =
      engine::validate(whole_bound_->side(), shards_bound_->side(), engine.comm.get(), options);
  add_verdict(verdict);
  if (inputs_.reference) {
    compare_unread_bytes(verdict, *engine.comm);
  } else {
    hold_bytes(verdict, *engine.comm);
  }
  if (engine.comm->rank() == 0) diagnose(verdict);
  compare_configs();
  // A launcher may end all processes once one has ended: they wait for each other.
  comm::all_do(*engine.comm, [this] {
    if (!options_.golden.empty()) add_golden_tier(options_.golden, whole_bound_->side(), report_);
  });
}

ValidateReport Validating::run() {
  const auto start = std::chrono::steady_clock::now();
  // The processes meet before they open the inputs, so that all know the error of one.
  engine_.emplace(open_engine(options_));
  bool can_run = false;
  comm::run_or_abort(*engine_->comm, [&] { can_run = all_can_run(); });
  if (can_run) attempt(&Validating::run_model);
  decide();
  report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!run_.empty() && !report_.digest.empty()) {
    VerdictFolder(options_.verdicts).put({run_, options_.require_coverage, report_});
  }
  return std::move(report_);
}

}  // namespace

ValidateReport validate(const ValidateOptions& options) {
  if (options.share && !options.golden.empty()) {
    throw Error(ErrorCode::kUsage, "a share runs some layers, and a golden file is of all")
        .help("compare with the golden file in a run without --share");
  }
  return Validating(options).run();
}

ValidateReport validate_and_join(const ValidateOptions& options) {
  ValidateReport report = validate(options);
  if (!report.share) return report;
  report.missing = missing_verdicts(options.verdicts);
  return report.missing.empty() ? joined_verdict(options.verdicts) : report;
}

}  // namespace shardtool::api

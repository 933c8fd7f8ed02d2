#include "lib/api/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/mapping/foreign_check.h"
#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/api/transfer/sources/recorded_names.h"
#include "lib/api/transfer/sources/replicas.h"
#include "lib/api/transfer/sources/stored_data.h"
#include "lib/api/transfer/sources/whole_model.h"
#include "lib/api/transfer/survey.h"
#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/check/baseline.h"
#include "lib/check/container.h"
#include "lib/check/copied_files.h"
#include "lib/check/coverage.h"
#include "lib/check/data/data.h"
#include "lib/check/data/file_hash.h"
#include "lib/check/data/packed_numbers.h"
#include "lib/check/mapping.h"
#include "lib/check/model.h"
#include "lib/format/folder_listing.h"
#include "lib/format/gguf/model.h"
#include "lib/format/read_headers.h"
#include "lib/format/typed_location.h"
#include "lib/layouts/recognise.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

using check::CheckRule;
using check::Finding;
using check::Findings;
using format::Checkpoint;

constexpr i64 kMaxBaselineBytes = 100'000'000;

bool is_single_file(const Checkpoint& opened) {
  return !store::is_folder(opened.path);
}

/// True for one file of several: a part of a model is not checked against config.json.
bool is_part_of_more(const Checkpoint& opened) {
  return is_single_file(opened) && format::list_folder(opened.folder()).weights.size() > 1;
}

/// True for files of single ranks without a usable manifest: their tensors are parts.
bool is_of_ranks(const LogicalCheckpoint& logical) {
  return std::ranges::any_of(
      logical.parts, [](const Checkpoint& part) { return part.format == format::kFilesOfRanks; });
}

bool is_all_read(const LogicalCheckpoint& logical) {
  return std::ranges::all_of(logical.parts, [](const Checkpoint& part) {
    return std::ranges::all_of(
        part.files, [](const auto& file) { return file.state == format::FileState::kRead; });
  });
}

class Check {
 public:
  explicit Check(const CheckOptions& options) : options_(options), findings_(profile_of(options)) {
    if (!options.mapping) return;
    config_.config = options.mapping->config;
    if (says_cut(*options.mapping)) mapping_ = options.mapping;
  }

  CheckReport run() {
    const auto started = std::chrono::steady_clock::now();
    if (const auto source = named_layout(options_.sources, config_.config)) {
      check_one(survey_of(open_model_in_layout(*source)));
    } else {
      check_sources();
    }
    findings_.sort();
    finish();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    report_.seconds = took.count();
    return std::move(report_);
  }

 private:
  static check::Profile profile_of(const CheckOptions& options) {
    check::Profile profile(options.profile);
    for (const std::string& id : options.ignore) profile.ignore(id);
    return profile;
  }

  void check_sources() {
    format::require_locations(options_.sources);
    std::vector<std::string> others;
    for (const std::string& source : options_.sources) {
      const format::TypedLocation typed = parse_source(source);
      if (format::gguf::is_gguf(typed)) {
        check_gguf(typed.place);
      } else {
        others.push_back(source);
      }
    }
    for (const Surveyed& surveyed : survey(others, findings_, report_.unreadable))
      check_one(surveyed);
  }

  /// Checks the headers of all GGUF models at a place.
  void check_gguf(const std::string& place) {
    if (options_.data || options_.mapping) {
      throw Error(ErrorCode::kUnsupported, "only the headers of GGUF files are checked")
          .at({place, 0, 0, ""})
          .help("leave out the mapping and the flags that read data");
    }
    for (const std::vector<std::string>& names : format::gguf::models_at(place)) {
      const std::string folder = format::gguf::folder_of(place);
      check::ContainerProblems problems(folder, findings_);
      const auto model = format::gguf::open_files(
          folder, names, [&](format::Problem problem) { problems.note(problem); });
      problems.finish({});
      report_.files += std::ssize(model.files);
      for (const format::gguf::ModelFile& file : model.files) {
        report_.tensors += std::ssize(file.header.tensors);
        for (const auto& tensor : file.header.tensors) report_.bytes += tensor.bytes;
      }
    }
  }

  void check_one(const Surveyed& surveyed) {
    const LogicalCheckpoint& logical = surveyed.logical;
    if (surveyed.foreign && mapping_) return check_foreign(surveyed);
    for (const Checkpoint& part : logical.parts) {
      if (!part.manifest) continue;
      check::check_digests(part, findings_);
      check_names(part);
    }
    // A single file need not have all ranks.
    const bool is_output = logical.parts.front().manifest && !is_single_file(logical.parts.front());
    const bool has_all_ranks = !is_output || check_shards(logical);
    if (surveyed.unclear) add_unclear(surveyed);
    const auto config = load_config(logical, config_);
    const std::vector<TensorSpec> specs = logical.specs();
    std::optional<check::Findings::Muted> muted;
    if (!has_all_ranks || !is_all_read(logical)) muted.emplace(findings_, check::kAbsenceRules);
    // Skipped if it is unclear which files belong together, and for shards of unknown tensors.
    std::optional<check::CheckedModel> model;
    if (config && !surveyed.unclear && !is_part_of_more(logical.parts.front()) &&
        !is_of_ranks(logical)) {
      model.emplace(check::CheckedModel{specs, *config, config_path(logical)});
      check_model(logical, *model);
    }
    if (mapping_) check_mapping(logical);
    auto data = readable(surveyed);
    if (!logical.parts.front().manifest && is_in_chunks(data)) add_copied_file(surveyed, data);
    read_data(surveyed, std::move(data), model);
    report_.files += std::ssize(logical.files);
    report_.tensors += std::ssize(logical.tensors);
  }

  void check_names(const Checkpoint& part) {
    const auto add = [&](const Error& error) {
      findings_.add(check::finding_of(CheckRule::kManifestInvalid, error,
                                      check::path_in(part.folder(), format::kManifestName)));
    };
    try {
      if (const auto misnamed = misnamed_tensor(part)) add(*misnamed);
    } catch (const Error& error) {
      add(error);
    }
  }

  static std::vector<std::string> names_of(const Surveyed& surveyed) {
    std::vector<std::string> names;
    for (const auto& file : surveyed.logical.parts.front().files) names.push_back(file.name);
    return names;
  }

  void add_unclear(const Surveyed& surveyed) {
    Finding unclear = *surveyed.unclear;
    if (surveyed.foreign) {
      unclear.fix =
          "the names number ranks: say with --mapping, --preset or --mesh how they were cut";
    }
    std::vector<std::string> tensors;
    for (const TensorSpec& spec : surveyed.logical.specs()) tensors.push_back(spec.name);
    const auto tools = layouts::layouts_of_folder(tensors, names_of(surveyed));
    std::string advice = layouts::advice_to_name(tools, surveyed.logical.parts.front().path);
    if (!advice.empty()) unclear.fix = std::move(advice);
    findings_.add(std::move(unclear));
  }

  /// Checks that the manifest's mapping can be applied. Returns the tensors of which it has devices
  /// share elements without being replicas; nullopt if that is not known, as without a config.json.
  std::optional<std::set<std::string>> check_recorded_mapping(const LogicalCheckpoint& logical) {
    const format::Checkpoint& first = logical.parts.front();
    const std::string manifest = check::path_in(first.folder(), format::kManifestName);
    if (first.manifest->mapping.empty()) {
      // A merge of files that no mapping has cut records none.
      if (first.manifest->layout == format::kWholeLayout) return std::set<std::string>();
      findings_.add({.rule = CheckRule::kManifestInvalid,
                     .message = "the manifest holds no mapping",
                     .file = manifest});
      return std::nullopt;
    }
    try {
      MappingChoice recorded;
      recorded.allow_empty_shards = true;  // older manifests do not say it
      return overlapping(apply_mapping(over_own_mesh(logical, recorded), logical));
    } catch (const Error& error) {
      const ErrorCode code = error.code();
      if (code == ErrorCode::kConfig || code == ErrorCode::kSizeExpression) return std::nullopt;
      if (!is_mapping_error(error) && !is_input_error(error)) throw;
      findings_.add(check::finding_of(CheckRule::kManifestInvalid, error, manifest));
    }
    return std::nullopt;
  }

  static std::set<std::string> overlapping(const AppliedMapping& applied) {
    std::map<const layout::Layout*, bool> known;
    std::set<std::string> names;
    for (const mapping::ResolvedTensor& tensor : applied.resolution.tensors) {
      const auto [found, is_new] = known.try_emplace(tensor.layout.get());
      if (is_new) found->second = check::has_partial_overlap(tensor.layout->holders());
      if (found->second) names.insert(applied.specs[tensor.tensor].name);
    }
    return names;
  }

  /// Returns true if no rank is missing, whose tensors would be reported again.
  bool check_shards(const LogicalCheckpoint& logical) {
    if (!check::check_ranks(logical.parts, findings_)) return false;
    std::optional<std::set<std::string>> meant = std::set<std::string>();
    if (logical.is_sharded()) meant = check_recorded_mapping(logical);
    std::vector<check::HeldTensor> held;
    held.reserve(logical.tensors.size());
    for (const LogicalTensor& tensor : logical.tensors) {
      held.push_back(
          {&tensor.spec.name, tensor.side.holders, !meant || meant->contains(tensor.spec.name)});
    }
    check::check_coverage(
        held, check::path_in(logical.parts.front().folder(), format::kManifestName), findings_);
    return true;
  }

  /// An adapter has few of the model's tensors, and lacks none.
  void check_model(const LogicalCheckpoint& logical, const check::CheckedModel& model) {
    std::optional<check::Findings::Muted> muted;
    if (is_adapter(logical.parts.front(), model.tensors))
      muted.emplace(findings_, check::kAbsenceRules);
    check::check_model(model, findings_);
    check::check_quantised(model, findings_);
  }

  i64 errors_so_far() const {
    i64 errors = 0;
    for (const check::RuleCount& rule : findings_.counts())
      errors += rule.severity == check::Severity::kError ? rule.count : 0;
    return errors;
  }

  /// True if no tensor is there shard by shard, since its whole shape is unknown. A profile or
  /// --ignore may hide that as a finding.
  static bool has_wholes(const std::vector<check::DataTensor>& data) {
    const auto is_same = [](const auto& a, const auto& b) { return a.spec.name == b.spec.name; };
    return std::ranges::adjacent_find(data, is_same) == data.end();
  }

  /// Checks shards without a manifest against the mapping, and what they are shards of against
  /// config.json if the shapes of all tensors are known.
  void check_foreign(const Surveyed& surveyed) {
    const auto config = load_config(surveyed.logical, *mapping_);
    const i64 errors = errors_so_far();
    const auto data =
        api::check_foreign(surveyed, *mapping_, config ? &*config : nullptr, findings_);
    const bool is_proved = errors_so_far() == errors && is_all_read(surveyed.logical);
    std::vector<TensorSpec> specs;
    std::optional<check::CheckedModel> model;
    if (data && config && is_proved && has_wholes(*data)) {
      for (const check::DataTensor& tensor : *data) specs.push_back(tensor.spec);
      model.emplace(check::CheckedModel{specs, *config, config_path(surveyed.logical)});
      check_model(surveyed.logical, *model);
    }
    if (data) {
      check::StoredBytes bytes;
      for (const check::DataTensor& tensor : *data) bytes.add(tensor);
      report_.bytes += bytes.total();
      add_copied_file(surveyed, *data);
      read_data(surveyed, *data, model);
    }
    report_.files += std::ssize(surveyed.shown_files);
    report_.tensors += std::ssize(surveyed.foreign->tensors);
  }

  /// True for a checkpoint in chunks, whose files hold different parts of one tensor.
  static bool is_in_chunks(std::span<const check::DataTensor> data) {
    return std::ranges::any_of(
        data, [](const check::DataTensor& tensor) { return tensor.side.holders->size() > 1; });
  }

  /// Reads samples of the files if data is read at all.
  void add_copied_file(const Surveyed& surveyed, std::span<const check::DataTensor> data) {
    if (!options_.data) return;
    const auto is_whole = [&](const auto& tensor) { return is_readable(surveyed, tensor); };
    if (!std::ranges::all_of(data, is_whole)) return;
    const auto copy = check::copied_file(data, surveyed.files);
    if (!copy) return;
    findings_.add({.rule = CheckRule::kCopiedFile,
                   .message = fmt::format("it has the bytes of {}", surveyed.shown_files[copy->of]),
                   .file = surveyed.shown_files[copy->file],
                   .tensor = copy->tensor,
                   .fix = "copy the file of this rank again"});
  }

  std::optional<mapping::ModelConfig> load_config(const LogicalCheckpoint& logical,
                                                  const MappingChoice& choice) {
    try {
      return model_config(choice, logical);
    } catch (const Error& error) {
      findings_.add(check::finding_of(CheckRule::kConfigInvalid, error, config_path(logical)));
      return std::nullopt;
    }
  }

  const std::string& config_path(const LogicalCheckpoint& logical) const {
    return config_.config.empty() ? logical.parts.front().config_path : config_.config;
  }

  void check_mapping(const LogicalCheckpoint& logical) {
    const MappingChoice& choice = *mapping_;
    const auto add = [&](const Error& error) {
      add_mapping_error(error, choice, logical, findings_);
    };
    try {
      std::optional<LogicalCheckpoint> read;
      if (takes_apart(choice)) read = read_as_chosen(logical, choice);
      const AppliedMapping applied =
          apply_mapping(over_own_mesh(logical, choice), read ? *read : logical, add);
      const std::string& file = choice.path.empty() ? logical.parts.front().path : choice.path;
      check::check_resolution(applied.resolution, file, findings_);
      check::check_doubts(applied.doubts, std::filesystem::path(choice.path).parent_path().string(),
                          findings_);
    } catch (const Error& error) {
      if (!is_mapping_error(error)) throw;
      add(error);
    }
  }

  /// True if the bytes of the holder are inside an opened file.
  static bool is_readable(const Surveyed& surveyed, const check::DataTensor& tensor, int holder) {
    const exec::Slot& slot = tensor.side.slots[static_cast<size_t>(holder)];
    const i64 end = slot.offset + check::holder_bytes(tensor, holder);
    return end <= surveyed.sizes[static_cast<size_t>(slot.file)];
  }
  static bool is_readable(const Surveyed& surveyed, const check::DataTensor& tensor) {
    for (int h = 0; h < tensor.side.holders->size(); ++h) {
      if (!is_readable(surveyed, tensor, h)) return false;
    }
    return true;
  }

  /// Returns the readable holders of each tensor: their bytes are inside an opened file. A tensor
  /// with an unreadable part has no digest. Counts the bytes of all holders.
  std::vector<check::DataTensor> readable(const Surveyed& surveyed) {
    std::vector<check::DataTensor> tensors;
    check::StoredBytes bytes;
    for (const LogicalConstant& constant : surveyed.logical.constants) {
      tensors.push_back(stored_data(constant));
      bytes.add(tensors.back());
    }
    for (const LogicalTensor& tensor : surveyed.logical.tensors) {
      check::DataTensor data = stored_data(tensor);
      bytes.add(data);
      std::vector<int> holders;
      for (int h = 0; h < data.side.holders->size(); ++h) {
        if (is_readable(surveyed, data, h)) holders.push_back(h);
      }
      if (holders.size() != data.side.slots.size()) data = part_of(data, holders);
      if (!holders.empty()) tensors.push_back(std::move(data));
    }
    report_.bytes += bytes.total();
    return tensors;
  }

  static check::DataTensor part_of(const check::DataTensor& whole, const std::vector<int>& chosen) {
    auto holders = std::make_shared<index::HolderSet>(whole.spec.shape);
    check::DataTensor part{whole.spec, {nullptr, {}}, {}, {}, {}};
    for (const int h : chosen) {
      const auto number = static_cast<size_t>(h);
      holders->add(whole.side.holders->region(h));
      part.side.slots.push_back(whole.side.slots[number]);
      if (!whole.ranks.empty()) part.ranks.push_back(whole.ranks[number]);
      if (!whole.xxh3.empty()) part.xxh3.push_back(whole.xxh3[number]);
      if (!whole.shifts.empty()) part.shifts.push_back(whole.shifts[number]);
    }
    part.side.holders = std::move(holders);
    return part;
  }

  void read_data(const Surveyed& surveyed, std::vector<check::DataTensor> tensors,
                 const std::optional<check::CheckedModel>& model) {
    if (!options_.data) return;
    const std::vector<bool> chosen = check::choose(*options_.data, tensors);
    std::vector<check::DataTensor> wanted;
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (chosen[t]) wanted.push_back(std::move(tensors[t]));
    }
    std::vector<check::DataFile> files;
    for (size_t f = 0; f < surveyed.shown_files.size(); ++f) {
      files.push_back({surveyed.files[f], surveyed.shown_files[f]});
    }
    const check::CheckedData data = check::check_data(wanted, files, options_.resources, findings_);
    report_.bytes_read += data.bytes;
    if (model) check::check_packed_numbers(*model, wanted, files, data.kept, findings_);
    if (!options_.data->is_all()) return;
    for (const Checkpoint& part : surveyed.logical.parts) {
      check::check_file_hashes(part, options_.resources, findings_);
    }
  }

  void finish() {
    report_.rules = findings_.counts();
    for (const check::RuleInfo& info : check::rule_table()) {
      if (!findings_.wants(info.rule)) report_.off.push_back(info.rule);
    }
    for (const Finding& finding : findings_.all()) report_.findings.push_back(finding);
    if (!options_.baseline.empty()) leave_out_known();
    for (const check::RuleCount& rule : report_.rules) {
      if (rule.severity == check::Severity::kError) report_.errors += rule.count;
      if (rule.severity == check::Severity::kWarning) report_.warnings += rule.count;
      if (rule.severity == check::Severity::kNote) report_.notes += rule.count;
    }
  }

  void leave_out_known() {
    check::Baseline baseline = check::Baseline::parse(
        store::read_text(options_.baseline, kMaxBaselineBytes), options_.baseline);
    std::erase_if(report_.findings, [&](const Finding& finding) {
      if (!baseline.take(finding)) return false;
      ++report_.known;
      for (check::RuleCount& rule : report_.rules) rule.count -= rule.rule == finding.rule ? 1 : 0;
      return true;
    });
    // Drops the counts of rules whose kept findings are all in the baseline.
    std::erase_if(report_.rules, [&](const check::RuleCount& rule) {
      return std::none_of(report_.findings.begin(), report_.findings.end(),
                          [&](const Finding& finding) { return finding.rule == rule.rule; });
    });
  }

  const CheckOptions& options_;
  MappingChoice config_;                  ///< the config.json to read, and nothing of a cut
  std::optional<MappingChoice> mapping_;  ///< unset if the typed one says only that
  Findings findings_;
  CheckReport report_;
};

}  // namespace

CheckReport check(const CheckOptions& options) {
  CheckReport report = Check(options).run();
  check_interrupted();  // a finding may be of a request that this has cut off
  return report;
}

std::string baseline_text(const CheckReport& report, const std::string& path) {
  return check::Baseline::of(report.findings, path).to_json();
}

}  // namespace shardtool::api

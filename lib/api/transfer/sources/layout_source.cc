#include "lib/api/transfer/sources/layout_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/transfer/sources/foreign_checkpoint.h"
#include "lib/api/transfer/sources/fused_source.h"
#include "lib/api/transfer/sources/missing_ranks.h"
#include "lib/api/transfer/sources/rank_source.h"
#include "lib/api/transfer/sources/stored_data.h"
#include "lib/api/transfer/sources/unfused_source.h"
#include "lib/api/transfer/target_layout.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/check/copied_files.h"
#include "lib/check/model.h"
#include "lib/format/reader.h"
#include "lib/layouts/engine_layout.h"
#include "lib/layouts/recognise.h"
#include "lib/mapping/document/glob.h"
#include "lib/mapping/resolve/output_tensors.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/mapping/resolve/stored_names.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

std::vector<std::string> patterns_of(const layouts::EngineLayout& layout) {
  std::vector<std::string> patterns;
  for (const layouts::FileNames& names : layout.files) patterns.push_back(names.pattern);
  return patterns;
}

/// Throws kUsage for a folder that has a manifest.
void refuse_manifest(const LayoutSource& source) {
  for (const std::string& location : source.locations) {
    if (!store::is_file(location + "/" + format::kManifestName)) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: is for files without a manifest", source.layout))
        .note("found", location + "/" + format::kManifestName)
        .help(fmt::format("leave out {}: in front of the path", source.layout));
  }
}

ForeignFiles foreign_files(const LayoutSource& source, const layouts::EngineLayout& layout) {
  auto files = find_foreign_files(source.locations);
  if (files) return *std::move(files);
  throw Error(ErrorCode::kUsage, "the names of the files do not number ranks")
      .note("found", source.locations.front())
      .help(fmt::format("give a folder with the files of all ranks, {}",
                        fmt::join(patterns_of(layout), " or ")));
}

/// Removes the tensors of the files that are no weights. Returns their names, each once.
std::set<std::string> take_out(check::ForeignShards& shards, const layouts::EngineLayout& layout) {
  std::set<std::string> names;
  for (const std::string& glob : layout.left_out) {
    const auto takes = mapping::glob_filter(glob);
    for (const check::RankTensor& tensor : shards.tensors) {
      if (takes(tensor.spec.name)) names.insert(tensor.spec.name);
    }
  }
  std::erase_if(shards.tensors,
                [&](const check::RankTensor& tensor) { return names.contains(tensor.spec.name); });
  return names;
}

/// Gives every tensor the checkpoint's name and leaves constants out.
void rename(check::ForeignShards& shards, const mapping::StoredNames& names) {
  std::vector<check::RankTensor> renamed;
  for (check::RankTensor& tensor : shards.tensors) {
    const auto origins = names.origins(tensor.spec.name, 0);
    if (origins.empty()) continue;
    tensor.spec.name = origins.front().names.front();
    renamed.push_back(std::move(tensor));
  }
  shards.tensors = std::move(renamed);
}

/// Mesh of the ranks that the files' names number.
mesh::Mesh mesh_of(const layouts::EngineLayout& layout, i64 devices) {
  const auto names = std::find_if(layout.files.begin(), layout.files.end(),
                                  [](const auto& pattern) { return pattern.axes.size() == 1; });
  if (names != layout.files.end()) return mesh::Mesh({{names->axes.front(), devices}});
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format("the file names of {} do not number ranks along one mesh axis", layout.label()));
}

Error error_of(const check::Finding& finding, ErrorCode code) {
  Error error(code, finding.message);
  error.at({finding.file, 0, 0, {}});
  if (!finding.tensor.empty()) error.tensor(finding.tensor);
  if (!finding.found.empty()) error.note("found", finding.found);
  if (!finding.expected.empty()) error.note("expected", finding.expected);
  return error;
}

/// Throws the first finding that makes a merge impossible.
void throw_first(const check::Findings& findings) {
  for (const check::Finding& finding : findings.all()) {
    if (finding.severity != check::Severity::kError) continue;
    const bool is_shape = finding.rule == check::CheckRule::kRankShape ||
                          finding.rule == check::CheckRule::kRankDtype;
    throw error_of(finding, is_shape ? ErrorCode::kShapeMismatch : ErrorCode::kCoverage)
        .help("take the files of all ranks, and config.json, from one checkpoint");
  }
}

/// Throws kCoverage for a model that lacks layers, tensors of a layer or experts, such as those of
/// a pipeline stage that is not there, and kShapeMismatch for one that otherwise contradicts the
/// config.json by which its tensors were cut. A layout whose file names tell the ranks alone gives
/// no other proof that all of them are there.
void require_of_config(const LogicalCheckpoint& read, const mapping::ModelConfig& config,
                       const std::string& config_file) {
  using enum check::CheckRule;
  check::Findings findings{check::Profile("")};
  const std::vector<TensorSpec> specs = read.specs();
  check::check_model({specs, config, config_file}, findings);
  const auto weight = [](const check::Finding& finding) {
    if (finding.rule == kMissingLayer) return 3;  // the cause of others, such as a missing head
    // The layout's table of names knows which tensors each file must have.
    if (finding.rule == kTensorMissing) return 0;
    if (finding.rule == kTiedTwice || finding.severity == check::Severity::kNote) return 0;
    return finding.severity == check::Severity::kError ? 2 : 1;
  };
  const auto worst = std::ranges::max_element(findings.all(), {}, weight);
  if (worst == findings.all().end() || weight(*worst) == 0) return;
  const bool is_lost = worst->rule == kMissingLayer || worst->rule == kLayerTensor ||
                       worst->rule == kMissingExpert || worst->rule == kHeadMissing;
  throw error_of(*worst, is_lost ? ErrorCode::kCoverage : ErrorCode::kShapeMismatch)
      .help(worst->fix.empty() ? "take config.json and weights from the same model" : worst->fix);
}

std::vector<TensorSpec> first_specs(const check::ForeignShards& shards) {
  std::vector<TensorSpec> specs;
  for (const check::RankTensor& tensor : shards.tensors) specs.push_back(tensor.spec);
  std::sort(specs.begin(), specs.end(),
            [](const TensorSpec& a, const TensorSpec& b) { return a.name < b.name; });
  const auto same = [](const TensorSpec& a, const TensorSpec& b) { return a.name == b.name; };
  specs.erase(std::unique(specs.begin(), specs.end(), same), specs.end());
  return specs;
}

/// Moves the opened files into a checkpoint whose tensors have the shapes of one rank's parts.
LogicalCheckpoint without_shapes(ForeignFiles& files) {
  LogicalCheckpoint opened;
  opened.parts = std::move(files.parts);
  for (format::Checkpoint& part : opened.parts) {
    part.tensors = {};
    for (const format::SourceFile& file : part.files) {
      opened.files.push_back({file.path, file.identity});
    }
  }
  for (TensorSpec& spec : first_specs(files.shards)) {
    opened.tensors.emplace_back().spec = std::move(spec);
  }
  return opened;
}

/// Throws kDataMismatch if the file of a rank is a copy of another rank's.
void refuse_copies(const LogicalCheckpoint& opened) {
  std::vector<check::DataTensor> tensors;
  for (const LogicalTensor& tensor : opened.tensors) tensors.push_back(stored_data(tensor));
  const auto copy = check::copied_file(tensors, opened.files);
  if (!copy) return;
  throw Error(ErrorCode::kDataMismatch, "the file of a rank is a copy of another rank's")
      .at({opened.files[copy->file].path, 0, 0, {}})
      .tensor(quote_for_message(copy->tensor))
      .note("equal to", quote_for_message(opened.files[copy->of].path))
      .help("copy the file of this rank again");
}

/// Interleaves the holders' rows where the layout's files have them so.
void interleave_rows(const mapping::Mapping& mapping, const mapping::ModelConfig* model,
                     const std::map<std::string, i64>& axis_sizes,
                     std::vector<LogicalTensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const LogicalTensor& tensor : tensors) specs.push_back(tensor.spec);
  const auto output = mapping::output_tensors(mapping, specs, std::vector<bool>(specs.size(), true),
                                              model, axis_sizes, nullptr);
  if (!output) return;
  for (const auto& [number, unit] : interleaved_units(output->tensors)) {
    LogicalTensor& tensor = tensors[number];
    tensor.side.holders = interleaved_holders(*tensor.side.holders, unit, tensor.spec.name);
  }
}

/// Opens a checkpoint in chunks whose tensors hold several of the model's.
LogicalCheckpoint open_by_read_rules(const LayoutSource& source,
                                     const layouts::EngineLayout& layout) {
  LogicalCheckpoint stored = open_stored(source.locations);
  const auto config =
      source.config.empty() ? stored.config() : std::optional(mapping::load_config(source.config));
  const mapping::ModelConfig* model = config ? &*config : nullptr;
  const std::string config_file =
      source.config.empty() ? stored.parts.front().config_path : source.config;
  if (is_of_ranks(stored)) {
    stored = joined_ranks(std::move(stored), layout, model);
    refuse_copies(stored);
  }
  const mapping::Mapping tables(documents_for(layout, model));
  LogicalCheckpoint read = unfused(std::move(stored), mapping::ReadRules(tables), model, &layout);
  if (config) require_of_config(read, *config, config_file);
  return read;
}

/// Ways in which a layout cuts a model: its own, then the entries of "layouts" in its documents.
std::vector<std::string> ways_to_cut(const mapping::Mapping& of_layout) {
  std::vector<std::string> ways{""};
  for (const mapping::Document& document : of_layout.documents()) {
    for (const auto& [name, axes] : document.layouts) ways.push_back(name);
  }
  return ways;
}

/// Whole tensors that one way of cutting makes the parts of, and the sizes of its axes.
struct Fitted {
  std::vector<check::DataTensor> data;
  std::map<std::string, i64> axis_sizes;
};

Fitted fit(const check::ForeignShards& shards, const mapping::Mapping& mapping,
           const mapping::ModelConfig* model, const mapping::ResolveOptions& options) {
  Fitted fitted;
  check::Findings findings{check::Profile("")};
  const auto resolve_and_note = [&](std::span<const TensorSpec> specs) {
    mapping::Resolution resolution = resolve(mapping, specs, model, options);
    fitted.axis_sizes = resolution.axis_sizes;
    return resolution;
  };
  try {
    fitted.data = check::check_foreign_shards(shards, resolve_and_note, findings);
  } catch (const Error&) {
    throw_first(findings);  // such as a missing rank, which is why experts are missing
    throw;
  }
  throw_first(findings);
  return fitted;
}

/// True if the parts, and those of missing ranks, are what one of the ways makes of whole tensors.
bool fits_any(const check::ForeignShards& shards, const mapping::Mapping& mapping,
              const mapping::ModelConfig* model, mapping::ResolveOptions options,
              const std::vector<std::string>& ways) {
  using enum check::CheckRule;
  return std::ranges::any_of(ways, [&](const std::string& way) {
    options.layout = way;
    check::Findings findings{check::Profile("")};
    const auto resolve = [&](std::span<const TensorSpec> specs) {
      return mapping::resolve(mapping, specs, model, options);
    };
    try {
      check::check_foreign_shards(shards, resolve, findings);
    } catch (const Error&) {
      return false;
    }
    return std::ranges::all_of(findings.all(), [](const check::Finding& finding) {
      return finding.rule == kMissingRank || finding.severity != check::Severity::kError;
    });
  });
}

/// Takes the first of the ways that makes the shapes of the parts. Throws the error of the first
/// way if none does.
Fitted fit_any(const check::ForeignShards& shards, const mapping::Mapping& mapping,
               const mapping::ModelConfig* model, mapping::ResolveOptions options,
               const std::vector<std::string>& ways) {
  std::optional<Error> of_first;
  for (const std::string& way : ways) {
    options.layout = way;
    try {
      return fit(shards, mapping, model, options);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kShapeMismatch) throw;
      if (!of_first) of_first = error;
    }
  }
  throw *std::move(of_first);
}

/// Opens files that are named by the ranks whose parts they have.
LogicalCheckpoint open_by_ranks(const LayoutSource& source, const layouts::EngineLayout& layout) {
  ForeignFiles files = foreign_files(source, layout);
  MappingChoice choice;
  choice.config = source.config.empty() ? files.config_path() : source.config;
  const auto config =
      choice.config.empty() ? std::nullopt : std::optional(mapping::load_config(choice.config));
  const mapping::ModelConfig* model = config ? &*config : nullptr;
  const auto documents = layouts::documents_for(layout, model);
  const mapping::Mapping of_layout(documents);
  const std::set<std::string> left_out = take_out(files.shards, layout);
  rename(files.shards, mapping::StoredNames(of_layout, model));
  mapping::ResolveOptions options;
  options.mesh = mesh_of(layout, ranks_by_names(files.shards));
  options.require_even = true;
  options.report = [](const Error&) {};
  check::ForeignShards shards = files.shards;
  if (config) shards.extents = check::extents_of_model(*config);
  LogicalCheckpoint opened = without_shapes(files);
  warn_of_left_out({left_out.begin(), left_out.end()}, opened);
  const mapping::Mapping mapping = with_layout(choose_mapping(choice, opened), documents);
  const std::vector<std::string> ways = ways_to_cut(of_layout);
  Fitted fitted;
  try {
    fitted = fit_any(shards, mapping, model, options, ways);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kShapeMismatch && error.code() != ErrorCode::kCoverage) throw;
    const i64 ranks = ranks_of(shards, [&](i64 devices) {
      options.mesh = mesh_of(layout, devices);
      return fits_any(shards, mapping, model, options, ways);
    });
    require_all_ranks(shards, layout, mesh_of(layout, ranks), source.locations.front());
    throw;
  }
  opened.tensors.clear();
  for (const check::DataTensor& tensor : fitted.data) {
    opened.tensors.push_back({tensor.spec, tensor.side, tensor.ranks, {}, {}, {}});
  }
  refuse_copies(opened);
  interleave_rows(mapping, model, fitted.axis_sizes, opened.tensors);
  return opened;
}

/// Opens files that are named by the ranks, whose tensors hold several of the model's.
LogicalCheckpoint open_fused(const LayoutSource& source, const layouts::EngineLayout& layout) {
  LogicalCheckpoint read = open_by_store_rules(source, layout);
  refuse_copies(read);
  return read;
}

}  // namespace

format::TypedLocation parse_source(const std::string& location) {
  const size_t colon = location.find(':');
  const bool has_form = colon != std::string::npos && location.compare(colon, 3, "://") != 0;
  // The names are decoded from all layouts, which takes longer than to open a small checkpoint.
  if (!has_form) return format::parse_location(location);
  return format::parse_location(location, layouts::read_layout_names());
}

std::optional<LayoutSource> named_layout(const std::vector<std::string>& locations,
                                         const std::string& config) {
  const std::vector<std::string> formats = format::format_names();
  LayoutSource source{{}, "", config};
  for (const std::string& location : locations) {
    const format::TypedLocation typed = parse_source(location);
    const std::string form = std::ranges::count(formats, typed.format) > 0 ? "" : typed.format;
    if (!source.locations.empty() && form != source.layout) {
      throw Error(ErrorCode::kUsage, "the paths are in different forms")
          .note("found", fmt::format("{} and {}", quote_for_message(locations.front()),
                                     quote_for_message(location)))
          .help(fmt::format("put the form of the files in front of every path, {}:PATH",
                            form.empty() ? source.layout : form));
    }
    source.layout = form;
    source.locations.push_back(typed.prefix.empty() ? typed.place
                                                    : typed.place + "#" + typed.prefix);
  }
  if (source.layout.empty()) return std::nullopt;
  return source;
}

std::string layout_advice(const LogicalCheckpoint& opened) {
  const std::vector<std::string>& forms = layouts::read_layout_names();
  const format::Checkpoint& part = opened.parts.front();
  if (part.manifest || std::ranges::count(forms, part.format) > 0) return {};
  if (is_of_ranks(opened)) return layouts::advice_to_name(layouts::layouts_of_ranks(), part.path);
  std::vector<std::string> files;
  for (const exec::SurveyedFile& file : opened.files) {
    files.push_back(file.path.substr(file.path.rfind('/') + 1));
  }
  std::vector<std::string> names;
  for (const LogicalTensor& tensor : opened.tensors) names.push_back(tensor.spec.name);
  return layouts::advice_to_name(layouts::layouts_with_tensors(names, files), part.path);
}

LogicalCheckpoint open_in_layout(const LayoutSource& source) {
  const layouts::EngineLayout& layout = layouts::find_layout(source.layout);
  refuse_manifest(source);
  LogicalCheckpoint opened = has_read_rules(layout) ? open_by_read_rules(source, layout)
                             : fuses(layout)        ? open_fused(source, layout)
                                                    : open_by_ranks(source, layout);
  for (format::Checkpoint& part : opened.parts) part.format = layout.label();
  return opened;
}

}  // namespace shardtool::api

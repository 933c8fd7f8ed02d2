#include "lib/api/transfer/sources/fused_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/mapping/unsharded_shapes.h"
#include "lib/api/transfer/file_entries.h"
#include "lib/api/transfer/sources/foreign_checkpoint.h"
#include "lib/api/transfer/target_layout.h"
#include "lib/base/error.h"
#include "lib/base/name_map.h"
#include "lib/base/text.h"
#include "lib/format/names.h"
#include "lib/layouts/file_numbers.h"
#include "lib/mapping/resolve/stored_names.h"

namespace shardtool::api {
namespace {

/// Ranks that one checkpoint may have. Numbers in names of files must not set the size of tables.
constexpr i64 kMostNumbered = 1 << 14;

/// Tensor in the files of a rank.
struct RankTensorPlace {
  Dtype dtype = Dtype::kF32;
  Shape shape;
  exec::Slot slot;
};

/// A name that tensors of the ranks have.
struct NameOfRanks {
  RankTensorPlace first;  ///< on the first rank that has it
  i64 most = 0;           ///< indices of the first axis, on the rank with most of them
  i64 all = 0;            ///< and on all ranks together
};

/// Tensors of the files, by the rank whose they are.
struct RankTables {
  const layouts::FileNames* names = nullptr;
  /// By index on the mesh axes of the file names.
  std::map<mesh::Coordinate, NameMap<RankTensorPlace>> tables;
  std::map<std::string, NameOfRanks> by_name;

  /// Mesh of the ranks that the files' names number.
  mesh::Mesh mesh() const {
    std::vector<mesh::MeshAxis> axes;
    for (const std::string& name : names->axes) axes.push_back({name, 1});
    for (const auto& [at, table] : tables) {
      for (size_t axis = 0; axis < at.size(); ++axis) {
        axes[axis].size = std::max(axes[axis].size, at[axis] + 1);
      }
    }
    return mesh::Mesh(std::move(axes));
  }
};

/// Index of a rank on the axes of the file names.
mesh::Coordinate place_of(const layouts::FileNames& names, const mesh::Mesh& mesh, i64 rank) {
  mesh::Coordinate at;
  for (const std::string& axis : names.axes) at.push_back(mesh.index_on(axis, rank));
  return at;
}

Error not_numbered(const LayoutSource& source, const layouts::EngineLayout& layout) {
  std::vector<std::string> patterns;
  for (const layouts::FileNames& names : layout.files) patterns.push_back(names.pattern);
  return Error(ErrorCode::kUsage, "the names of the files do not number ranks")
      .note("found", source.locations.front())
      .help(fmt::format("give a folder with the files of all ranks, {}",
                        fmt::join(patterns, " or ")));
}

/// Throws kCoverage if a rank lacks a file before its last one.
void check_parts(const layouts::NumberedFiles& numbered, const std::vector<std::string>& paths) {
  std::map<std::map<std::string, i64>, std::set<i64>> parts;
  for (const layouts::FileNumbers& file : numbered.files) parts[file.on].insert(file.part);
  for (size_t f = 0; f < numbered.files.size(); ++f) {
    const std::set<i64>& found = parts[numbered.files[f].on];
    if (*found.rbegin() + 1 == std::ssize(found)) continue;
    throw Error(ErrorCode::kCoverage, "a file of a rank is missing")
        .at({paths[f], 0, 0, {}})
        .note("found", fmt::format("part {} of this rank", fmt::join(found, ", ")))
        .help("put all files of the ranks into one folder");
  }
}

void add_tensor(const format::StoredTensor& tensor, int first_file, const mesh::Coordinate& at,
                const std::string& path, RankTables& into) {
  RankTensorPlace place{tensor.dtype, tensor.shape, {first_file + tensor.file, tensor.offset}};
  NameOfRanks& name = into.by_name.try_emplace(tensor.name, NameOfRanks{place, 0, 0}).first->second;
  const i64 count = tensor.shape.empty() ? 1 : tensor.shape.front();
  name.most = std::max(name.most, count);
  name.all = checked_add(name.all, count).value_or(name.all);
  if (into.tables[at].emplace(tensor.name, std::move(place)).second) return;
  throw Error(ErrorCode::kTensorInvalid, "a tensor is in two files of one rank")
      .at({path, 0, 0, {}})
      .tensor(quote_for_message(tensor.name));
}

RankTables tables_of(const std::vector<format::Checkpoint>& parts, const LayoutSource& source,
                     const layouts::EngineLayout& layout) {
  std::vector<std::string> names, paths;
  for (const format::Checkpoint& part : parts) {
    for (const format::SourceFile& file : part.files) {
      names.push_back(file.name.substr(file.name.rfind('/') + 1));
      paths.push_back(file.path);
    }
  }
  const auto numbered = layouts::numbered_files(layout, names);
  if (!numbered) throw not_numbered(source, layout);
  check_parts(*numbered, paths);
  RankTables tables{numbered->names, {}, {}};
  int first_file = 0;
  for (const format::Checkpoint& part : parts) {
    for (const format::StoredTensor& tensor : part.tensors) {
      const auto file = static_cast<size_t>(first_file + tensor.file);
      mesh::Coordinate at;
      for (const std::string& axis : tables.names->axes) {
        at.push_back(numbered->files[file].on.at(axis));
      }
      add_tensor(tensor, first_file, at, paths[file], tables);
    }
    first_file += static_cast<int>(part.files.size());
  }
  if (tables.tables.empty()) throw not_numbered(source, layout);
  return tables;
}

/// Number of tensors that a stack holds: on every rank all, or on each of them some.
enum class Stacks { kWhole, kDealt };

/// One way in which a layout may have cut a model.
struct Way {
  std::string cut;  ///< entry of "layouts" of the layout's documents, or empty
  Stacks stacks = Stacks::kWhole;
};

/// Tensors of the model, and ranks without files.
struct Fit {
  std::vector<LogicalTensor> tensors;
  std::vector<i64> missing;
};

class Inverse {
 public:
  Inverse(const layouts::EngineLayout& layout, const mapping::ModelConfig& config,
          MappingChoice choice, const RankTables& ranks, LogicalCheckpoint& opened)
      : layout_(layout),
        config_(config),
        choice_(std::move(choice)),
        ranks_(ranks),
        opened_(opened),
        documents_(layouts::documents_for(layout, &config)) {
    const mapping::StoredNames names(documents_, &config_);
    const bool has_stacks = std::ranges::any_of(ranks.by_name, [&](const auto& entry) {
      return std::ranges::any_of(names.origins(entry.first, 0), &mapping::StoredOrigin::is_stack);
    });
    std::vector<std::string> cuts{""};
    for (const mapping::Document& document : documents_.documents()) {
      for (const auto& [name, axes] : document.layouts) cuts.push_back(name);
    }
    for (const std::string& cut : cuts) {
      ways_.push_back({cut, Stacks::kWhole});
      if (has_stacks) ways_.push_back({cut, Stacks::kDealt});
    }
  }

  /// Tries the ways over a mesh. Throws the error of the first if none fits.
  Fit fit_any(const mesh::Mesh& mesh) {
    std::optional<Error> first;
    for (const Way& way : ways_) {
      try {
        return fit(mesh, way);
      } catch (const Error& error) {
        if (!first) first = error;
      }
    }
    throw *std::move(first);
  }

  /// Sizes of a mesh axis above that of the files' names, of which the last files may be missing:
  /// what a rank has of an axis of a tensor then divides the tensor's.
  std::set<i64> larger_sizes(i64 above) {
    constexpr i64 kMost = 1024;
    std::set<i64> sizes;
    for (const TensorSpec& whole : unsharded({})) {
      const auto stored = ranks_.by_name.find(whole.name);
      if (stored == ranks_.by_name.end()) continue;
      const Shape& part = stored->second.first.shape;
      if (part.size() != whole.shape.size()) continue;
      for (size_t axis = 0; axis < part.size(); ++axis) {
        if (part[axis] < 1 || whole.shape[axis] % part[axis] != 0) continue;
        const i64 parts = whole.shape[axis] / part[axis];
        if (parts > above && parts <= kMost) sizes.insert(parts);
      }
    }
    return sizes;
  }

 private:
  /// The model's tensors with their own shapes, sorted by name. Of several origins of a stored
  /// tensor, the first that the model has is taken: a checkpoint may have fused tensors itself.
  std::vector<TensorSpec> unsharded(const Way& way) {
    const mapping::StoredNames names(documents_, &config_);
    constexpr i64 kMostStacked = 1 << 16;
    std::vector<std::vector<std::vector<TensorSpec>>> origins;  // by stored name
    std::vector<TensorSpec> candidates;
    for (const auto& [stored, of] : ranks_.by_name) {
      const i64 count = way.stacks == Stacks::kWhole ? of.most : of.all;
      auto& of_stored = origins.emplace_back();
      for (const auto& origin : names.origins(stored, std::min(count, kMostStacked))) {
        const Shape& shape = of.first.shape;
        const Shape inner(shape.begin() + (origin.is_stack && !shape.empty() ? 1 : 0), shape.end());
        auto& specs = of_stored.emplace_back();
        for (const std::string& name : origin.names) specs.push_back({name, of.first.dtype, inner});
        candidates.insert(candidates.end(), specs.begin(), specs.end());
      }
    }
    show(candidates);
    const mapping::Mapping mapping =
        with_layout(choose_mapping(choice_, opened_), layouts::documents_for(layout_, &config_));
    const UnshardedShapes shapes(mapping, config_, candidates);
    std::map<std::string, TensorSpec> chosen;
    for (auto& of_stored : origins) {
      if (of_stored.empty()) continue;  // a constant
      const auto known = std::ranges::find_if(of_stored, [&](const auto& specs) {
        return std::ranges::all_of(specs, [&](const auto& spec) { return shapes.has(spec.name); });
      });
      for (TensorSpec& spec : known == of_stored.end() ? of_stored.front() : *known) {
        spec.shape = shapes.of(spec);
        chosen.try_emplace(spec.name, spec);
      }
    }
    std::vector<TensorSpec> specs;
    for (auto& [name, spec] : chosen) specs.push_back(std::move(spec));
    return specs;
  }

  /// Gives the opened checkpoint these tensors, of which no holder is known.
  void show(const std::vector<TensorSpec>& specs) {
    opened_.tensors.clear();
    for (const TensorSpec& spec : specs) opened_.tensors.emplace_back().spec = spec;
  }

  /// Matches the files with what the layout makes of the model.
  Fit fit(const mesh::Mesh& mesh, const Way& way) {
    show(unsharded(way));
    choice_.mesh = mesh;
    choice_.layout = way.cut;
    const AppliedMapping applied = apply_mapping(choice_, opened_);
    const TargetLayout target = sharded_target(opened_, applied, {});
    const auto entries = file_entries(opened_, target);
    Fit found;
    std::vector<std::vector<exec::Slot>> slots;
    for (const TargetTensor& tensor : target.tensors) slots.emplace_back(tensor.ranks.size());
    for (size_t r = 0; r < target.ranks.size(); ++r) {
      const auto table = ranks_.tables.find(place_of(*ranks_.names, target.mesh, target.ranks[r]));
      if (table == ranks_.tables.end()) {
        found.missing.push_back(target.ranks[r]);
        continue;
      }
      for (const FileEntry& entry : entries[r]) {
        const RankTensorPlace& place = require(entry, target, target.ranks[r], table->second);
        exec::Slot next = place.slot;
        for (const ShardNumber shard : entry.shards) {
          const auto tensor = static_cast<size_t>(shard.tensor);
          slots[tensor][static_cast<size_t>(shard.holder)] = next;
          next.offset +=
              exec::holder_bytes(*target.tensors[tensor].holders, shard.holder, place.dtype);
        }
      }
      refuse_others(entries[r], target, target.ranks[r], table->second);
    }
    for (size_t t = 0; t < target.tensors.size(); ++t) {
      const TargetTensor& tensor = target.tensors[t];
      LogicalTensor& logical = found.tensors.emplace_back();
      logical.spec = opened_.tensors[tensor.source].spec;
      logical.side = {tensor.holders, std::move(slots[t])};
      logical.ranks = tensor.ranks;
      logical.shifts = tensor.shifts;
    }
    return found;
  }

  /// Returns the tensor of a rank that the layout makes there. Throws kCoverage if the rank lacks
  /// it, and kShapeMismatch if it has another form.
  const RankTensorPlace& require(const FileEntry& entry, const TargetLayout& target, i64 rank,
                                 const NameMap<RankTensorPlace>& table) const {
    const mapping::OutputTensor& output = (*target.output)[entry.output];
    const auto stored = table.find(output.name);
    if (stored == table.end()) {
      throw explained(
          Error(ErrorCode::kCoverage, fmt::format("the files of rank {} lack a tensor", rank))
              .tensor(quote_for_message(output.name))
              .note("expected", text_of(entry.dtype, entry.shape)));
    }
    const RankTensorPlace& place = stored->second;
    const bool is_alike =
        place.shape == entry.shape && (output.constant.has_value() || place.dtype == entry.dtype);
    if (is_alike) return place;
    throw explained(Error(ErrorCode::kShapeMismatch,
                          fmt::format("a tensor of rank {} has another form than the layout {} "
                                      "makes of config.json's model",
                                      rank, layout_.label()))
                        .at({opened_.files[static_cast<size_t>(place.slot.file)].path, 0, 0, {}})
                        .tensor(quote_for_message(output.name))
                        .note("found", text_of(place.dtype, place.shape))
                        .note("expected", text_of(entry.dtype, entry.shape)));
  }

  /// Throws kCoverage for a tensor that the layout has on other ranks only.
  void refuse_others(const std::vector<FileEntry>& entries, const TargetLayout& target, i64 rank,
                     const NameMap<RankTensorPlace>& table) const {
    if (entries.size() == table.size()) return;
    std::set<std::string_view> expected;
    for (const FileEntry& entry : entries) expected.insert((*target.output)[entry.output].name);
    for (const auto& [name, of] : ranks_.by_name) {
      if (expected.contains(name) || !table.contains(name)) continue;
      throw explained(Error(ErrorCode::kCoverage,
                            fmt::format("the files of rank {} have a tensor that the layout {} "
                                        "does not store there",
                                        rank, layout_.label()))
                          .tensor(quote_for_message(name)));
    }
  }

  /// Adds why the files may differ from those that the engine loads.
  Error explained(Error error) const {
    for (const std::string& reason : layouts::saved_reasons(layout_, config_, ranks_.mesh())) {
      error.note("why", reason);
    }
    error.help("take config.json and the files of all ranks from one run of the engine");
    return error;
  }

  static std::string text_of(Dtype dtype, const Shape& shape) {
    return fmt::format("{} {}", shardtool::to_string(dtype), shardtool::to_string(shape));
  }

  const layouts::EngineLayout& layout_;
  const mapping::ModelConfig& config_;
  MappingChoice choice_;
  const RankTables& ranks_;
  LogicalCheckpoint& opened_;
  mapping::Mapping documents_;
  std::vector<Way> ways_;
};

/// Throws kUnsupported for a model that the layout cannot express.
void refuse_inexpressible(const layouts::EngineLayout& layout, const mapping::ModelConfig& config,
                          const mesh::Mesh& mesh) {
  try {
    layouts::check_expressible(layout, config, mesh);
  } catch (const Error& error) {
    Error refused(error.code(), fmt::format("files of the layout {} are not read for this model",
                                            layout.label()));
    for (const auto& [label, text] : error.notes()) refused.note(label, text);
    throw refused.help("take the checkpoint that the engine loaded");
  }
}

Error missing_files(const LayoutSource& source, const RankTables& ranks, const mesh::Mesh& mesh,
                    const std::vector<i64>& missing) {
  std::vector<std::string> names;
  for (const i64 rank : missing) names.push_back(file_name(*ranks.names, mesh, rank, 0));
  return Error(ErrorCode::kCoverage,
               fmt::format("the files of {} of {} ranks are missing", missing.size(), mesh.size()))
      .at({source.locations.front(), 0, 0, {}})
      .note("missing", format::list_for_message(names))
      .help("put the files of all ranks into one folder, and give the folder");
}

/// Ranks of a mesh without files.
std::vector<i64> without_files(const RankTables& ranks, const mesh::Mesh& mesh) {
  std::vector<i64> missing;
  for (i64 rank = 0; rank < mesh.size(); ++rank) {
    if (!ranks.tables.contains(place_of(*ranks.names, mesh, rank))) missing.push_back(rank);
  }
  return missing;
}

/// Throws kCoverage if the files are those of some ranks of a larger mesh.
void refuse_part_of_larger(const LayoutSource& source, const RankTables& ranks,
                           const mesh::Mesh& mesh, Inverse& inverse) {
  for (size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    for (const i64 size : inverse.larger_sizes(mesh.axes()[axis].size)) {
      std::vector<mesh::MeshAxis> axes(mesh.axes().begin(), mesh.axes().end());
      axes[axis].size = size;
      std::vector<i64> missing;
      const mesh::Mesh larger{std::move(axes)};
      try {
        missing = inverse.fit_any(larger).missing;
      } catch (const Error&) {
        continue;
      }
      throw missing_files(source, ranks, larger, missing);
    }
  }
}

}  // namespace

LogicalCheckpoint open_by_store_rules(const LayoutSource& source,
                                      const layouts::EngineLayout& layout) {
  LogicalCheckpoint opened;
  opened.parts = survey_files_of_ranks(source.locations);
  const RankTables ranks = tables_of(opened.parts, source, layout);
  MappingChoice choice;
  choice.engine_layout = layout.label();
  choice.config = source.config;
  for (format::Checkpoint& part : opened.parts) {
    if (choice.config.empty()) choice.config = part.config_path;
    part.tensors = {};
    part.format = layout.label();  // no longer files of single ranks
    for (const format::SourceFile& file : part.files) {
      opened.files.push_back({file.path, file.identity});
    }
  }
  const auto config =
      choice.config.empty() ? std::nullopt : std::optional(mapping::load_config(choice.config));
  static_cast<void>(layouts::documents_for(layout, config ? &*config : nullptr));
  const mesh::Mesh mesh = ranks.mesh();
  if (mesh.size() > kMostNumbered) {
    throw Error(ErrorCode::kCoverage, "the files of most ranks are missing")
        .at({source.locations.front(), 0, 0, {}})
        .note("found", plural(std::ssize(ranks.tables), "rank"))
        .note("expected", fmt::format("{}, by the numbers in the names", mesh.size()));
  }
  refuse_inexpressible(layout, *config, mesh);
  Inverse inverse(layout, *config, choice, ranks, opened);
  Fit fit;
  try {
    fit = inverse.fit_any(mesh);
  } catch (const Error&) {
    refuse_part_of_larger(source, ranks, mesh, inverse);
    fit.missing = without_files(ranks, mesh);
    if (fit.missing.empty()) throw;
  }
  if (!fit.missing.empty()) throw missing_files(source, ranks, mesh, fit.missing);
  opened.tensors = std::move(fit.tensors);
  std::ranges::sort(opened.tensors, {}, [](const LogicalTensor& one) { return one.spec.name; });
  for (const std::string& reason : layouts::saved_reasons(layout, *config, mesh)) {
    opened.parts.front().warnings.push_back({reason, "", format::Oddity::kOtherEntry});
  }
  return opened;
}

}  // namespace shardtool::api

#include "lib/api/transfer/sources/open_source.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "lib/api/mapping/full_places.h"
#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/mapping/recorded_mapping.h"
#include "lib/api/transfer/sources/config_source.h"
#include "lib/api/transfer/sources/foreign_checkpoint.h"
#include "lib/api/transfer/sources/unfused_source.h"
#include "lib/api/transfer/sources/whole_model.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/folder_listing.h"
#include "lib/layouts/recognise.h"
#include "lib/mapping/resolve/read_parts.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

/// Names of the tensors in a folder with files of ranks; none if it cannot be read.
std::vector<std::string> tensors_of_ranks(const std::string& folder) {
  std::set<std::string> names;
  try {
    for (const format::Checkpoint& part : survey_files_of_ranks({folder})) {
      for (const format::StoredTensor& tensor : part.tensors) names.insert(tensor.name);
    }
  } catch (const Error&) {
    return {};
  }
  return {names.begin(), names.end()};
}

/// Opens what the files say, with advice where only a layout says how they belong together.
LogicalCheckpoint open_by_files(const std::vector<std::string>& locations) {
  try {
    return open_stored(locations);
  } catch (Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    const std::string place = parse_source(locations.front()).place;
    if (!store::is_folder(place)) throw;
    const format::FolderListing listing = format::list_folder(place);
    std::vector<std::string> files = listing.weights;
    files.insert(files.end(), listing.torch_weights.begin(), listing.torch_weights.end());
    const auto tools = layouts::layouts_of_folder(tensors_of_ranks(place), files);
    const auto advice = layouts::advice_to_name(tools, place);
    if (!advice.empty()) error.help(advice);
    throw;
  }
}

/// Throws kUnsupported for an output of ours with a tensor that a rule would take apart.
void refuse_fused(const LogicalCheckpoint& output, const mapping::ReadRules& rules) {
  for (const LogicalTensor& tensor : output.tensors) {
    const auto match = rules.find(tensor.spec.name, tensor.spec.shape.size());
    if (!match) continue;
    throw Error(ErrorCode::kUnsupported,
                "the tensors of an output of shardtool are not taken apart by \"read\"")
        .at(match->rule->place)
        .tensor(quote_for_message(tensor.spec.name))
        .help("apply the mapping to the checkpoint that the output was made from");
  }
}

/// Warns of rules that take no tensor of the checkpoint, of which one is probably misspelt.
void warn_of_unused(LogicalCheckpoint& opened, const mapping::ReadRules& rules) {
  std::set<const mapping::ReadRule*> used;
  for (const LogicalTensor& tensor : opened.tensors) {
    const auto match = rules.find(tensor.spec.name, tensor.spec.shape.size());
    if (match) used.insert(match->rule);
  }
  for (const mapping::ReadRule* rule : rules.all()) {
    if (used.contains(rule)) continue;
    opened.parts.front().warnings.push_back(
        {fmt::format("no tensor has the name '{}' of a rule of \"read\"", rule->name.text()), "",
         format::Oddity::kOtherEntry});
  }
}

/// Shows the tensors of a checkpoint without a manifest; the choice names its config.json.
LogicalCheckpoint taken_apart(LogicalCheckpoint opened, const mapping::ReadRules& rules,
                              const MappingChoice& choice) {
  const auto config = model_config(choice, opened);
  return unfused(std::move(opened), rules, config ? &*config : nullptr, nullptr);
}

}  // namespace

LogicalCheckpoint open_logical(const std::vector<std::string>& locations, const Opening& opening) {
  if (const auto source = named_layout(locations, opening.mapping.config)) {
    return open_model_in_layout(*source);
  }
  if (opening.takes_config_alone && locations.size() == 1) {
    auto described = open_config_alone(locations.front(), opening.mapping.config, opening.graph);
    if (described) return read_as_chosen(*std::move(described), opening.mapping);
  }
  LogicalCheckpoint opened = open_by_files(locations);
  if (!opening.takes_files_of_ranks) refuse_files_of_ranks(opened);
  return read_as_chosen(std::move(opened), opening.mapping);
}

bool is_config_alone(const std::vector<std::string>& locations) {
  return locations.size() == 1 && !named_layout(locations, "") &&
         format::config_without_weights(locations.front()).has_value();
}

LogicalCheckpoint read_by(const mapping::Mapping& mapping, const MappingChoice& choice,
                          LogicalCheckpoint opened) {
  if (opened.parts.front().manifest || !has_read_rules(mapping)) return opened;
  return taken_apart(std::move(opened), mapping::ReadRules(mapping), choice);
}

bool takes_apart(const MappingChoice& choice) {
  return !choice.path.empty() && has_read_rules(mapping::load_mapping(choice.path));
}

LogicalCheckpoint read_as_chosen(LogicalCheckpoint opened, const MappingChoice& choice) {
  if (choice.path.empty()) return opened;
  return with_full_places(choice, [&] {
    const mapping::Mapping mapping = mapping::load_mapping(choice.path);
    if (!has_read_rules(mapping)) return std::move(opened);
    const mapping::ReadRules rules(mapping);
    if (opened.parts.front().manifest) {
      refuse_fused(opened, rules);
      return std::move(opened);
    }
    warn_of_unused(opened, rules);
    return taken_apart(std::move(opened), rules, choice);
  });
}

LogicalCheckpoint read_as_recorded(LogicalCheckpoint opened, const LogicalCheckpoint& other,
                                   const MappingChoice& choice) {
  const format::Checkpoint& part = other.parts.front();
  if (!part.manifest || part.manifest->mapping.empty()) return opened;
  const auto recorded =
      mapping_from_json(part.manifest->mapping, part.path + "/" + format::kManifestName);
  return read_by(recorded, choice, std::move(opened));
}

LogicalCheckpoint open_finished(const std::vector<std::string>& locations, const Opening& opening) {
  LogicalCheckpoint opened = open_logical(locations, opening);
  require_digests(opened);
  return opened;
}

}  // namespace shardtool::api

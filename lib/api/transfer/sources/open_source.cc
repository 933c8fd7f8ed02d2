#include "lib/api/transfer/sources/open_source.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "lib/api/mapping/full_places.h"
#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/mapping/recorded_mapping.h"
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
    const auto tools = layouts::layouts_with_files(files);
    if (!tools.empty()) error.help(layouts::advice_to_name(tools, place));
    throw;
  }
}

/// Throws kUnsupported for an output of ours with a tensor that the mapping would take apart.
void refuse_fused(const LogicalCheckpoint& output, const mapping::Mapping& mapping,
                  const std::string& path) {
  const mapping::ReadRules rules(mapping);
  if (rules.empty()) return;
  for (const LogicalTensor& tensor : output.tensors) {
    if (!rules.find(tensor.spec.name, tensor.spec.shape.size())) continue;
    throw Error(ErrorCode::kUnsupported,
                "the tensors of an output of shardtool are not taken apart by \"read\"")
        .at({path, 0, 0, "/read"})
        .tensor(quote_for_message(tensor.spec.name))
        .help("apply the mapping to the checkpoint that the output was made from");
  }
}

/// Warns of rules that take no tensor of the checkpoint, of which one is probably misspelt.
void warn_of_unused(LogicalCheckpoint& opened, const mapping::Mapping& mapping) {
  const mapping::ReadRules rules(mapping);
  if (rules.empty()) return;
  std::set<const mapping::ReadRule*> used;
  for (const LogicalTensor& tensor : opened.tensors) {
    const auto match = rules.find(tensor.spec.name, tensor.spec.shape.size());
    if (match) used.insert(match->rule);
  }
  for (const mapping::Document& document : mapping.documents()) {
    for (const mapping::ReadRule& rule : document.read) {
      if (used.contains(&rule)) continue;
      opened.parts.front().warnings.push_back(
          {fmt::format("no tensor has the name '{}' of a rule of \"read\"", rule.name.text()), "",
           format::Oddity::kOtherEntry});
    }
  }
}

}  // namespace

LogicalCheckpoint open_logical(const std::vector<std::string>& locations, const Opening& opening) {
  if (const auto source = named_layout(locations, opening.mapping.config)) {
    return open_model_in_layout(*source);
  }
  LogicalCheckpoint opened = open_by_files(locations);
  if (!opening.takes_files_of_ranks) refuse_files_of_ranks(opened);
  return read_as_chosen(std::move(opened), opening.mapping);
}

LogicalCheckpoint read_by(const mapping::Mapping& mapping, const MappingChoice& choice,
                          LogicalCheckpoint opened) {
  if (opened.parts.front().manifest || mapping::ReadRules(mapping).empty()) return opened;
  const auto config = model_config(choice, opened);
  return unfused(std::move(opened), mapping, config ? &*config : nullptr, nullptr);
}

LogicalCheckpoint read_as_chosen(LogicalCheckpoint opened, const MappingChoice& choice) {
  if (choice.path.empty()) return opened;
  return with_full_places(choice, [&] {
    const mapping::Mapping mapping = mapping::load_mapping(choice.path);
    if (opened.parts.front().manifest) {
      refuse_fused(opened, mapping, choice.path);
    } else {
      warn_of_unused(opened, mapping);
    }
    return read_by(mapping, choice, std::move(opened));
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

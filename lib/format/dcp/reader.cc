#include "lib/format/dcp/reader.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/format/chunks.h"
#include "lib/format/dcp/files.h"
#include "lib/format/dcp/open.h"
#include "lib/format/names.h"

namespace shardtool::format::dcp {
namespace {

bool is_metadata(std::string_view file) {
  return file == kMetadataName;
}

bool recognises_dcp(const Location& location) {
  if (!location.file.empty()) return is_metadata(location.file);
  const bool has_other_weights = !location.listing.weights.empty();
  return is_checkpoint(location.folder) ||
         (!has_other_weights && !location.listing.dcp_data.empty());
}

void open_dcp(Checkpoint& checkpoint, Location& location, const ProblemSink& report) {
  checkpoint.format = "torch.distributed.checkpoint";
  if (!is_checkpoint(location.folder)) {
    throw Error(ErrorCode::kFileMissing, "the folder has .distcp files, but no .metadata")
        .at({location.folder, 0, 0, ""})
        .help("the save was interrupted, or the hidden file was not copied: copy the folder again")
        .help("metadata of single ranks (__0.metadata) is not read: save with collectives");
  }
  read_files(checkpoint, report);
  std::erase_if(checkpoint.other_files, [&](const std::string& name) {
    return std::ranges::any_of(checkpoint.files,
                               [&](const SourceFile& file) { return file.name == name; });
  });
  group_chunks(checkpoint, report);
}

}  // namespace

const Reader kReader{"dcp", is_metadata, recognises_dcp, open_dcp};

}  // namespace shardtool::format::dcp

#include "lib/api/transfer/sources/files_of_ranks.h"

#include "lib/base/error.h"
#include "lib/format/read_headers.h"

namespace shardtool::api {

void refuse_files_of_ranks(const format::Checkpoint& opened) {
  if (opened.format != format::kFilesOfRanks) return;
  throw Error(ErrorCode::kCoverage, "the file has the shards of one rank, not whole tensors")
      .at({opened.path, 0, 0, ""})
      .note("found", "\"shardtool.rank\" in its header, and no manifest.json opened with it")
      .help("give the folder that `shardtool split` or `reshard` wrote, with its manifest.json");
}

void refuse_files_of_ranks(const LogicalCheckpoint& source) {
  for (const format::Checkpoint& part : source.parts) refuse_files_of_ranks(part);
}

}  // namespace shardtool::api

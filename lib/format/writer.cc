#include "lib/format/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/format/dcp/files.h"
#include "lib/format/manifest/manifest.h"
#include "lib/format/safetensors/files.h"

namespace shardtool::format {
namespace {

constexpr auto kWriters = std::to_array<Writer>({
    {kSafetensors, safetensors::plan_files, safetensors::frame_file, safetensors::index_name,
     safetensors::write_index},
    {kDcp, dcp::plan_files, dcp::frame_file, dcp::metadata_name, dcp::write_metadata},
});

}  // namespace

std::span<const Writer> writer_table() {
  return kWriters;
}

const Writer& find_writer(std::string_view name) {
  const auto found = std::find_if(kWriters.begin(), kWriters.end(),
                                  [name](const Writer& row) { return row.name == name; });
  if (found != kWriters.end()) return *found;
  throw Error(ErrorCode::kInternal, fmt::format("no format '{}' can be written", name));
}

}  // namespace shardtool::format

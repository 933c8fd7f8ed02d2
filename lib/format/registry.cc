#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/format/dcp/reader.h"
#include "lib/format/hugging_face/index_reader.h"
#include "lib/format/manifest/output_reader.h"
#include "lib/format/names.h"
#include "lib/format/reader.h"
#include "lib/format/safetensors/reader.h"
#include "lib/format/torch/rank_files.h"
#include "lib/format/torch/reader.h"

namespace shardtool::format {
namespace {

/// The formats that are read. The first row that recognises a location opens it: a folder is opened
/// by its most specific sign, and safetensors files go before torch files.
constexpr auto kReaders = std::to_array<const Reader*>({
    &kOutputReader,
    &dcp::kReader,
    &kSafetensorsIndexReader,
    &safetensors::kReader,
    &kTorchIndexReader,
    &torch::kRankFilesReader,
    &torch::kReader,
});

Error no_weights(const Location& location) {
  if (location.listing.foreign_weights.empty()) {
    return Error(ErrorCode::kFileMissing, "no weights file in the folder")
        .at({location.folder, 0, 0, ""})
        .note("expected", "a .safetensors, .bin, .pt or .pth file")
        .help("give the folder that holds the weights, or one file");
  }
  const auto& found = location.listing.foreign_weights;
  const bool all_gguf = std::all_of(
      found.begin(), found.end(), [](const std::string& name) { return name.ends_with(".gguf"); });
  return Error(ErrorCode::kUnsupported, "the folder has weights in another format only")
      .at({location.folder, 0, 0, ""})
      .note("found", list_for_message(found))
      .help(all_gguf ? "GGUF is read by `shardtool inspect` and `shardtool check` only: take the "
                       "safetensors "
                       "checkpoint that it was made from"
                     : "fetch the safetensors version, or convert with transformers' "
                       "save_pretrained(..., safe_serialization=True)");
}

}  // namespace

bool is_entry_of_folder(std::string_view file) {
  return std::any_of(kReaders.begin(), kReaders.end(),
                     [file](const Reader* reader) { return reader->is_entry(file); });
}

const Reader& reader_of(const Location& location) {
  const auto reader =
      std::find_if(kReaders.begin(), kReaders.end(),
                   [&location](const Reader* row) { return row->recognises(location); });
  if (reader == kReaders.end()) throw no_weights(location);
  return **reader;
}

}  // namespace shardtool::format

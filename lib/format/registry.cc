#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <ranges>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/shell.h"
#include "lib/base/text.h"
#include "lib/format/dcp/reader.h"
#include "lib/format/gguf/model.h"
#include "lib/format/hugging_face/index_reader.h"
#include "lib/format/manifest/output_reader.h"
#include "lib/format/names.h"
#include "lib/format/reader.h"
#include "lib/format/safetensors/reader.h"
#include "lib/format/torch/megatron_ranks.h"
#include "lib/format/torch/rank_files.h"
#include "lib/format/torch/reader.h"
#include "lib/store/reader.h"

namespace shardtool::format {
namespace {

/// The formats that are read. The first row that recognises a location opens it: a folder is opened
/// by its most specific sign, and safetensors files go before torch files. Rows of one format
/// follow each other.
constexpr auto kReaders = std::to_array<const Reader*>({
    &kOutputReader,
    &dcp::kReader,
    &kSafetensorsIndexReader,
    &safetensors::kReader,
    &kTorchIndexReader,
    &torch::kRankFilesReader,
    &torch::kMegatronReader,
    &torch::kReader,
});

bool is_found(std::string_view format, const Location& location) {
  if (format == kGguf) return !gguf::file_names(location.listing).empty();
  return std::ranges::any_of(kReaders, [&](const Reader* row) {
    return row->format == format && row->recognises(location);
  });
}

/// Formats of a folder, whichever the user insists on.
std::vector<std::string> formats_at(Location location) {
  location.format.clear();
  std::vector<std::string> found = format_names();
  std::erase_if(found, [&](const std::string& name) { return !is_found(name, location); });
  return found;
}

Error no_gguf_here(Error error) {
  return error.help(
      "GGUF is read by `shardtool inspect` and `shardtool check` only: take the safetensors "
      "checkpoint that it was made from");
}

/// Folder of the last iteration of a training run, as Megatron names them; empty if there is none.
std::string last_iteration(const std::string& folder) {
  std::string last;
  for (const std::string& name : store::folders_in(folder)) {
    if (name.starts_with("iter_")) last = std::max(last, name);
  }
  return last;
}

bool has_weights(const std::string& folder) {
  try {
    const FolderListing listing = list_folder(folder);
    return !listing.weights.empty() || !listing.torch_weights.empty() ||
           !listing.dcp_data.empty() || !listing.rank_folders.empty();
  } catch (const Error&) {
    return false;
  }
}

/// Folder with weights directly in a local folder: of numbered ones, such as checkpoint-500, the
/// last; empty if there is none.
std::string folder_of_weights(const std::string& folder) {
  if (store::is_remote(folder)) return "";
  std::vector<std::string> names = store::folders_in(folder);
  std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
  std::ranges::sort(names, std::ranges::greater(),
                    [](const std::string& name) { return std::pair(name.size(), name); });
  const auto found = std::ranges::find_if(
      names, [&](const std::string& name) { return has_weights(folder + "/" + name); });
  return found == names.end() ? "" : folder + "/" + *found;
}

std::string advice_on_folder(const std::string& folder) {
  if (const std::string last = last_iteration(folder); !last.empty())
    return fmt::format("give the folder of one iteration, such as {}/{}", folder, last);
  const std::string inner = folder_of_weights(folder);
  if (inner.empty()) return "give the folder that holds the weights, or one file";
  return fmt::format("give the folder that holds the weights, such as {}",
                     quote_for_message(inner));
}

Error no_weights(const Location& location) {
  const auto& found = location.listing.foreign_weights;
  if (found.empty()) {
    Error error(ErrorCode::kFileMissing, "no weights file in the folder");
    error.at({location.folder, 0, 0, ""})
        .note("expected", "a .safetensors, .bin, .pt, .pth or .ckpt file");
    if (has_name(location.listing.others, "config.json")) {
      error.help(
          fmt::format("config.json is enough for `shardtool plan {}`, and for no other command",
                      path_argument(location.folder)));
    }
    return error.help(advice_on_folder(location.folder));
  }
  Error error(ErrorCode::kUnsupported, "the folder has weights in another format only");
  error.at({location.folder, 0, 0, ""}).note("found", list_for_message(found));
  if (gguf::file_names(location.listing).size() == found.size())
    return no_gguf_here(std::move(error));
  return error.help(
      "fetch the safetensors version, or convert with transformers' save_pretrained(..., "
      "safe_serialization=True)");
}

/// Tells why the format that the user insists on has no reader here.
Error not_of_format(const Location& location) {
  const std::string path =
      location.file.empty() ? location.folder : location.folder + "/" + location.file;
  if (location.format == kGguf) {
    return no_gguf_here(
        Error(ErrorCode::kUnsupported, "a GGUF model is not converted").at({path, 0, 0, ""}));
  }
  const bool is_file = !location.file.empty();
  Error error(ErrorCode::kFileMissing, fmt::format("the {} is no checkpoint in the format {}",
                                                   is_file ? "file" : "folder", location.format));
  error.at({path, 0, 0, ""});
  if (is_file) return error.help("name the folder");
  const std::vector<std::string> found = formats_at(location);
  return error.note("found", found.empty() ? "no weights" : list_for_message(found))
      .help("leave the format out to read the first that is found");
}

/// Files of a folder that belong to a format.
std::vector<std::string> files_of(std::string_view format, const FolderListing& listing) {
  if (format == kGguf) return gguf::file_names(listing);
  if (format == torch::kReader.format) {
    return listing.torch_weights.empty() ? listing.rank_folders : listing.torch_weights;
  }
  if (format == dcp::kReader.format) return listing.dcp_data;
  return listing.weights;
}

}  // namespace

bool is_entry_of_folder(std::string_view file) {
  return std::any_of(kReaders.begin(), kReaders.end(),
                     [file](const Reader* reader) { return reader->is_entry(file); });
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Reader* row : kReaders) {
    if (names.empty() || names.back() != row->format) names.emplace_back(row->format);
  }
  names.emplace_back(kGguf);
  return names;
}

const Reader& reader_of(const Location& location) {
  const auto reader = std::ranges::find_if(kReaders, [&location](const Reader* row) {
    const bool may_be = location.format.empty() || location.format == row->format;
    return may_be && row->recognises(location);
  });
  if (reader != kReaders.end()) return **reader;
  throw location.format.empty() ? no_weights(location) : not_of_format(location);
}

void warn_of_other_formats(Checkpoint& checkpoint, const Location& location, const Reader& chosen) {
  const bool is_certain = !location.format.empty() || !location.file.empty();
  if (is_certain || &chosen == &kOutputReader) return;
  const std::vector<std::string> all = format_names();
  const auto own = std::ranges::find(all, chosen.format);
  for (const std::string& format : std::ranges::subrange(own + 1, all.end())) {
    if (!is_found(format, location)) continue;
    checkpoint.warnings.push_back(
        {fmt::format("files in another format are left out: {}; {}:{} takes them instead",
                     list_for_message(files_of(format, location.listing)), format, location.folder),
         "", Oddity::kOtherEntry});
  }
}

}  // namespace shardtool::format

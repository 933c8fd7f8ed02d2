#include "lib/format/torch/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/folder_listing.h"
#include "lib/format/names.h"
#include "lib/format/read_headers.h"
#include "lib/format/torch/archive.h"
#include "lib/format/torch/deepspeed.h"
#include "lib/format/torch/state_dict.h"

namespace shardtool::format::torch {
namespace {

constexpr std::string_view kFormat = "torch";
constexpr std::string_view kUsualName = "pytorch_model.bin";

bool is_never_entry(std::string_view) {
  return false;
}

/// Also takes a file of any other name if the user says so.
bool recognises_torch(const Location& location) {
  if (location.file.empty()) return !location.listing.torch_weights.empty();
  if (is_entry_of_folder(location.file)) return false;
  return is_torch_name(location.file) || !location.format.empty();
}

/// The files of a folder that are the checkpoint, also those that a numbered series lacks; empty if
/// that is unclear.
std::vector<std::string> weights_of(const std::vector<std::string>& names) {
  if (has_name(names, kUsualName)) return {std::string(kUsualName)};
  std::vector<std::string> parts;
  std::copy_if(names.begin(), names.end(), std::back_inserter(parts), [](const std::string& name) {
    return name.find("-of-") != std::string::npos && name.ends_with(".bin");
  });
  if (!parts.empty()) {
    if (auto series = series_of(parts, ".bin"); !series.empty()) return series;
  }
  return names.size() == 1 ? names : std::vector<std::string>{};
}

void open_torch(Checkpoint& checkpoint, Location& location, const ProblemSink& report) {
  checkpoint.format = "torch";
  if (!location.file.empty()) {
    return read_files(checkpoint, {location.file}, read_torch_file, report);
  }
  const std::vector<std::string>& names = location.listing.torch_weights;
  const std::vector<std::string> weights = weights_of(names);
  if (weights.empty()) {
    const std::string advice = deepspeed_advice(names);
    report({ProblemKind::kUnclearChoice,
            unclear_choice(checkpoint.path, names,
                           advice.empty() ? "several files need pytorch_model.bin.index.json "
                                            "beside them; name one file to open it alone"
                                          : advice),
            ""});
    checkpoint.format = "torch files";
    return read_files(checkpoint, names, read_torch_file, report);
  }
  if (weights.size() > 1 && std::ranges::includes(names, weights)) warn_of_no_index(checkpoint);
  read_files(checkpoint, weights, read_torch_file, report);
  report_tensors_in_two_files(checkpoint, report);
  warn_of_unlisted(checkpoint, names, "the weights");
}

/// Formats "'epoch' (an integer), 'args' (argparse.Namespace) and 3 more".
std::string list_entries(const std::vector<OtherEntry>& entries) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(entries.size(), kMost); ++i) {
    if (i > 0) text += ", ";
    text += fmt::format("'{}' ({})", quote_for_message(entries[i].name), entries[i].what);
  }
  if (entries.size() <= kMost) return text;
  return fmt::format("{} and {} more", text, entries.size() - kMost);
}

void warn_of_others(Checkpoint& checkpoint, const std::string& file,
                    const std::vector<OtherEntry>& others) {
  if (others.empty()) return;
  checkpoint.warnings.push_back(
      {fmt::format(
           "{} no tensor and {} left out: {}",
           others.size() == 1 ? "one entry is" : fmt::format("{} entries are", others.size()),
           others.size() == 1 ? "is" : "are", list_entries(others)),
       file, Oddity::kOtherEntry});
  checkpoint.others.insert(checkpoint.others.end(), others.begin(), others.end());
}

[[noreturn]] void refuse_zero3(const NamedSlot& tensor, const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  throw Error(ErrorCode::kUnsupported, "the file of DeepSpeed's ZeRO 3 has none of the weights")
      .at({path, 0, 0, ""})
      .tensor(quote_for_message(tensor.name))
      .note("found", "no element")
      .help(deepspeed_advice({name}));
}

}  // namespace

void require_whole(const NamedSlot& tensor, const std::string& path) {
  if (!tensor.part || tensor.part->whole == tensor.slot.shape) return;
  const bool is_empty = tensor.slot.bytes == 0;
  throw Error(ErrorCode::kUnsupported, fmt::format("the file has {} of a distributed tensor",
                                                   is_empty ? "no shard" : "one rank's shard"))
      .at({path, 0, 0, ""})
      .tensor(quote_for_message(tensor.name))
      .help(
          "name the folder that has model_world_size_N_rank_R.pt of all ranks, or save the whole "
          "tensor (full_tensor() of a DTensor, gather() of a ShardedTensor)");
}

StateDict read_state_dict(Checkpoint& checkpoint, SourceFile& source, const store::Reader& file) {
  return read_state_dict(checkpoint, source, read_archive(file), file.path());
}

StateDict read_state_dict(Checkpoint& checkpoint, SourceFile& source, const Archive& archive,
                          const std::string& path) {
  // A link that the user names is followed.
  if (store::is_folder(checkpoint.path)) require_inside(checkpoint.path, source.name);
  StateDict content = state_dict(archive, path);
  source.header_xxh3 = archive.header_xxh3;
  source.framework = "pt";
  checkpoint.header_bytes += archive.header_bytes;
  std::stable_sort(
      content.tensors.begin(), content.tensors.end(),
      [](const NamedSlot& a, const NamedSlot& b) { return a.slot.offset < b.slot.offset; });
  warn_of_others(checkpoint, source.name, content.others);
  return content;
}

void read_torch_file(Checkpoint& checkpoint, SourceFile& source, const store::Reader& file,
                     const ProblemSink&) {
  const auto number = static_cast<int>(checkpoint.files.size());
  for (NamedSlot& tensor : read_state_dict(checkpoint, source, file).tensors) {
    if (tensor.slot.bytes == 0 && is_zero3_model_name(source.name))
      refuse_zero3(tensor, file.path());
    require_whole(tensor, file.path());
    checkpoint.tensors.push_back({std::move(tensor.name), tensor.slot.dtype,
                                  std::move(tensor.slot.shape), number, tensor.slot.offset,
                                  tensor.slot.bytes});
  }
}

const Reader kReader{kFormat, is_never_entry, recognises_torch, open_torch};

}  // namespace shardtool::format::torch

#include "lib/format/hugging_face/index_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/format/hugging_face/hf_index.h"
#include "lib/format/names.h"
#include "lib/format/read_headers.h"
#include "lib/format/torch/reader.h"
#include "lib/store/reader.h"

namespace shardtool::format {
namespace {

constexpr i64 kMaxIndexBytes = 100'000'000;

/// Differences between the two kinds of files under an index.
struct IndexedFormat {
  std::string_view format;
  std::string_view usual_name;  ///< of the index
  IndexedFiles files;
  ReadFile read_file;
  const std::vector<std::string>& indices;
  const std::vector<std::string>& weights;
};

IndexedFormat safetensors_format(const FolderListing& listing) {
  return {"safetensors index",
          "model.safetensors.index.json",
          {is_safetensors_name, ".safetensors", "model-00001-of-00002.safetensors"},
          read_safetensors_file,
          listing.indices,
          listing.weights};
}

IndexedFormat torch_format(const FolderListing& listing) {
  return {"torch index",
          "pytorch_model.bin.index.json",
          {is_torch_name, ".bin", "pytorch_model-00001-of-00002.bin"},
          torch::read_torch_file,
          listing.torch_indices,
          listing.torch_weights};
}

/// Compares the index with the files that could be read. The others were reported before, so their
/// tensors are not reported as missing.
std::vector<Warning> check_read_files(HfIndex index, const Checkpoint& checkpoint,
                                      const std::string& path, const ProblemSink& report) {
  const auto is_unread = [&](const auto& one) {
    const auto file = static_cast<size_t>(one.file);
    return file < checkpoint.files.size() && checkpoint.files[file].state != FileState::kRead;
  };
  const size_t unread = std::erase_if(index.weights, is_unread);
  if (unread == 0) return check_index(index, checkpoint.tensors, path, report);
  index.total_size.reset();
  std::vector<StoredTensor> tensors = checkpoint.tensors;
  std::erase_if(tensors, is_unread);
  return check_index(index, tensors, path, report);
}

/// Numbers the files of the index as the checkpoint does. Files that only one of them has stand at
/// the end.
void number_as(const Checkpoint& checkpoint, HfIndex& index) {
  std::vector<std::string> files;
  for (const SourceFile& file : checkpoint.files) files.push_back(file.name);
  std::vector<int> numbers;
  for (const std::string& name : index.files) {
    const auto found = std::ranges::find(files, name);
    numbers.push_back(static_cast<int>(found - files.begin()));
    if (found == files.end()) files.push_back(name);
  }
  for (HfIndex::Weight& weight : index.weights)
    weight.file = numbers[static_cast<size_t>(weight.file)];
  index.files = std::move(files);
}

/// Reads the index `name` at `path`. Reports one that cannot be read, and returns nullopt.
std::optional<HfIndex> read_index(const std::string& path, const std::string& name,
                                  const IndexedFormat& format, const ProblemSink& report) {
  const auto name_file = [&](Problem problem) {
    problem.file = name;
    report(std::move(problem));
  };
  try {
    return parse_index(store::read_source_text(path, kMaxIndexBytes), path, name_file,
                       format.files);
  } catch (const Error& error) {
    report({ProblemKind::kIndexInvalid, error, name});
    return std::nullopt;
  }
}

/// Name of the index: the named one, the usual one, or the only one.
std::string index_name(const Location& location, const IndexedFormat& format) {
  if (!location.file.empty()) return location.file;
  if (has_name(format.indices, format.usual_name)) return std::string(format.usual_name);
  if (format.indices.size() == 1) return format.indices.front();
  throw unclear_choice(location.folder, format.indices, "name the index that you mean");
}

void open_indexed(Checkpoint& checkpoint, const Location& location, const IndexedFormat& format,
                  const ProblemSink& report) {
  const std::string name = index_name(location, format);
  const std::string path = checkpoint.path + "/" + name;
  checkpoint.format = format.format;
  std::optional<HfIndex> index = read_index(path, name, format, report);
  if (!index) return read_files(checkpoint, format.weights, format.read_file, report);
  read_files(checkpoint, index->files, format.read_file, report);
  report_tensors_in_two_files(checkpoint, report);
  for (Warning& warning : check_read_files(*std::move(index), checkpoint, path, report)) {
    checkpoint.warnings.push_back(std::move(warning));
  }
  warn_of_unlisted(checkpoint, format.weights, name);
}

bool recognises(const Location& location, bool (*is_entry)(std::string_view),
                const std::vector<std::string>& indices) {
  return location.file.empty() ? !indices.empty() : is_entry(location.file);
}

}  // namespace

const Reader kSafetensorsIndexReader{
    "safetensors", is_index_name,
    [](const Location& location) {
      return recognises(location, is_index_name, location.listing.indices);
    },
    [](Checkpoint& checkpoint, Location& location, const ProblemSink& report) {
      open_indexed(checkpoint, location, safetensors_format(location.listing), report);
    }};

const Reader kTorchIndexReader{
    "torch", is_torch_index_name,
    [](const Location& location) {
      return recognises(location, is_torch_index_name, location.listing.torch_indices);
    },
    [](Checkpoint& checkpoint, Location& location, const ProblemSink& report) {
      open_indexed(checkpoint, location, torch_format(location.listing), report);
    }};

void check_index_beside(Checkpoint& checkpoint, const FolderListing& listing,
                        const ProblemSink& report) {
  const IndexedFormat format = safetensors_format(listing);
  const std::string name(format.usual_name);
  if (!has_name(format.indices, name)) {
    std::vector<std::string> names;
    for (const SourceFile& file : checkpoint.files) names.push_back(file.name);
    std::ranges::sort(names);
    if (names.size() > 1 && !series_of(names, format.files.extension).empty())
      warn_of_no_index(checkpoint);
    return;
  }
  const std::string path = checkpoint.path + "/" + name;
  std::optional<HfIndex> index = read_index(path, name, format, report);
  if (!index) return;
  number_as(checkpoint, *index);
  for (Warning& warning : check_read_files(*std::move(index), checkpoint, path, report)) {
    checkpoint.warnings.push_back(std::move(warning));
  }
}

}  // namespace shardtool::format

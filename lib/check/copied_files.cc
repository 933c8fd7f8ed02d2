#include "lib/check/copied_files.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "lib/store/reader.h"

namespace shardtool::check {
namespace {

constexpr i64 kSampleBytes = 4096;

/// A part of a tensor in a file.
struct Part {
  i64 offset = 0;
  i64 bytes = 0;
  const DataTensor* tensor = nullptr;
  int holder = 0;

  bool is_part_of(const Part& other) const {
    return tensor->spec.name == other.tensor->spec.name &&
           tensor->side.holders->region(holder) == other.tensor->side.holders->region(other.holder);
  }
};

/// Parts of a file by offset.
using FileParts = std::vector<Part>;

std::vector<FileParts> parts_by_file(std::span<const DataTensor> tensors, size_t files) {
  std::vector<FileParts> parts(files);
  for (const DataTensor& tensor : tensors) {
    for (int h = 0; h < tensor.side.holders->size(); ++h) {
      const exec::Slot& slot = tensor.side.slots[static_cast<size_t>(h)];
      parts[static_cast<size_t>(slot.file)].push_back(
          {slot.offset, holder_bytes(tensor, h), &tensor, h});
    }
  }
  for (FileParts& of_file : parts) std::ranges::sort(of_file, {}, &Part::offset);
  return parts;
}

/// Groups of files whose parts lie at the same places.
std::vector<std::vector<size_t>> alike(const std::vector<FileParts>& parts) {
  std::map<std::vector<std::pair<i64, i64>>, std::vector<size_t>> groups;
  for (size_t f = 0; f < parts.size(); ++f) {
    std::vector<std::pair<i64, i64>> places;
    for (const Part& part : parts[f]) places.emplace_back(part.offset, part.bytes);
    if (!places.empty()) groups[std::move(places)].push_back(f);
  }
  std::vector<std::vector<size_t>> found;
  for (auto& [places, files] : groups) {
    if (files.size() > 1) found.push_back(std::move(files));
  }
  return found;
}

using Sample = std::vector<std::byte>;

Sample sample_of(const exec::SurveyedFile& file, const Part& part) {
  Sample sample(static_cast<size_t>(std::min(part.bytes, kSampleBytes)));
  store::open_reader(file.path).read(sample, part.offset);
  return sample;
}

bool is_of_one_value(const Sample& sample) {
  return std::ranges::all_of(sample, [&](std::byte byte) { return byte == sample.front(); });
}

/// Files that no sample has told apart so far.
struct Class {
  std::vector<size_t> files;
  std::vector<size_t> equal_parts;  ///< those whose samples are equal and of several values
};

/// Divides a class by the samples of a part.
std::vector<Class> divided(const Class& files, size_t part, const std::vector<FileParts>& parts,
                           std::span<const exec::SurveyedFile> all) {
  const Part& first = parts[files.files.front()][part];
  const bool should_differ =
      std::ranges::any_of(files.files, [&](size_t f) { return !parts[f][part].is_part_of(first); });
  if (!should_differ) return {files};
  std::map<Sample, std::vector<size_t>> by_sample;
  for (const size_t f : files.files) by_sample[sample_of(all[f], parts[f][part])].push_back(f);
  std::vector<Class> classes;
  for (auto& [sample, equal] : by_sample) {
    if (equal.size() == 1) continue;
    Class& one = classes.emplace_back(std::move(equal), files.equal_parts);
    if (!is_of_one_value(sample)) one.equal_parts.push_back(part);
  }
  return classes;
}

/// Returns a file of the class that holds other parts than the first one, with equal bytes.
std::optional<CopiedFile> copy_in(const Class& files, const std::vector<FileParts>& parts) {
  const size_t first = files.files.front();
  for (const size_t part : files.equal_parts) {
    for (const size_t file : files.files) {
      if (parts[file][part].is_part_of(parts[first][part])) continue;
      return CopiedFile{file, first, parts[first][part].tensor->spec.name};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<CopiedFile> copied_file(std::span<const DataTensor> tensors,
                                      std::span<const exec::SurveyedFile> files) {
  const std::vector<FileParts> parts = parts_by_file(tensors, files.size());
  for (std::vector<size_t>& group : alike(parts)) {
    const size_t count = parts[group.front()].size();
    std::vector<Class> classes{{std::move(group), {}}};
    for (size_t part = 0; part < count && !classes.empty(); ++part) {
      std::vector<Class> next;
      for (const Class& one : classes) {
        std::ranges::move(divided(one, part, parts, files), std::back_inserter(next));
      }
      classes = std::move(next);
    }
    for (const Class& one : classes) {
      if (auto found = copy_in(one, parts)) return found;
    }
  }
  return std::nullopt;
}

}  // namespace shardtool::check

#include "lib/check/data/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/check/coverage.h"
#include "lib/check/data/data_findings.h"
#include "lib/check/data/data_reader.h"
#include "lib/check/data/record_sums.h"
#include "lib/exec/compare.h"

namespace shardtool::check {
namespace {

/// Compares elements that holders share without being replicas one by one.
void compare_overlaps(std::span<const DataTensor> tensors, std::span<const DataFile> files,
                      const exec::Resources& resources, Findings& findings) {
  std::vector<exec::TensorMove> moves;
  std::vector<const DataTensor*> compared;
  std::map<int, int> opened;
  std::vector<exec::SourceFile> sources;
  for (const DataTensor& tensor : tensors) {
    if (!tensor.shifts.empty() || !has_partial_overlap(*tensor.side.holders)) continue;
    exec::MoveSide side = tensor.side;
    for (exec::Slot& slot : side.slots) {
      const auto [found, is_new] = opened.try_emplace(slot.file, static_cast<int>(sources.size()));
      if (is_new) sources.emplace_back(files[static_cast<size_t>(slot.file)].file);
      slot.file = found->second;
    }
    moves.push_back({tensor.spec.name, tensor.spec.dtype, tensor.spec.shape, side, side, {}});
    compared.push_back(&tensor);
  }
  exec::Resources quiet = resources;
  quiet.on_progress = nullptr;
  const auto differences = exec::compare(moves, sources, sources, quiet);
  for (size_t i = 0; i < differences.size(); ++i) {
    if (differences[i].bytes == 0) continue;
    const auto holder = static_cast<size_t>(differences[i].holder);
    const DataTensor& tensor = *compared[i];
    findings.add({.rule = CheckRule::kReplicasDiffer,
                  .message = "ranks hold other bytes for elements that they share",
                  .file = files[static_cast<size_t>(tensor.side.slots[holder].file)].shown,
                  .tensor = tensor.spec.name,
                  .rank = tensor.ranks.empty() ? -1 : tensor.ranks[holder],
                  .found = fmt::format("{} bytes differ, the first is byte {} of the whole tensor",
                                       differences[i].bytes, differences[i].first)});
  }
}

}  // namespace

bool has_padding(const DataTensor& tensor, int holder) {
  const index::Region region = tensor.side.holders->region(holder);
  return index::image_size(region) != element_count(index::local_shape(region)).value_or(0);
}

i64 holder_bytes(const DataTensor& tensor, int holder) {
  return exec::holder_bytes(*tensor.side.holders, holder, tensor.spec.dtype);
}

i64 stored_bytes(const DataTensor& tensor) {
  i64 bytes = 0;
  for (int h = 0; h < tensor.side.holders->size(); ++h) bytes += holder_bytes(tensor, h);
  return bytes;
}

void StoredBytes::add(const DataTensor& tensor) {
  for (int h = 0; h < tensor.side.holders->size(); ++h) {
    const exec::Slot& slot = tensor.side.slots[static_cast<size_t>(h)];
    i64& bytes = slots_[{slot.file, slot.offset}];
    const i64 longest = std::max(bytes, holder_bytes(tensor, h));
    total_ += longest - std::exchange(bytes, longest);
  }
}

CheckedData check_data(std::span<const DataTensor> tensors, std::span<const DataFile> files,
                       const exec::Resources& resources, Findings& findings) {
  CheckedData checked;
  RecordSums sums(files, findings);
  const auto seen = read_holders(tensors, files, resources, sums, checked.kept);
  sums.judge();
  compare_overlaps(tensors, files, resources, findings);
  StoredBytes bytes;
  for (size_t t = 0; t < tensors.size(); ++t) {
    judge_data(tensors[t], seen[t], files, checked.kept, findings);
    bytes.add(tensors[t]);
  }
  checked.bytes = bytes.total();
  return checked;
}

}  // namespace shardtool::check

#include "kernels/device/workbench.h"

#include <algorithm>

namespace shardtool::kernels {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;
/// Alignment of memory that GPUs allocate.
constexpr size_t kAlignment = 256;

}  // namespace

Workbench::Placed Workbench::place(size_t bytes) {
  const size_t wanted = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const auto fits = [wanted](const Block& block) {
    return block.memory.size() - block.used >= wanted;
  };
  auto block = std::ranges::find_if(blocks_, fits);
  if (block == blocks_.end()) {
    blocks_.push_back({PairedMemory(*accelerator_, std::max(wanted, kBlockBytes)), 0});
    block = std::prev(blocks_.end());
  }
  const size_t at = block->used;
  block->used += wanted;
  return {block->memory.here() + at, block->memory.there() + at};
}

const std::byte* Workbench::upload(std::span<const std::byte> values) {
  if (values.empty()) return nullptr;
  const Placed placed = place(values.size());
  std::memcpy(placed.here, values.data(), values.size());
  accelerator_->upload(placed.here, values.size(), placed.there);
  return placed.there;
}

std::byte* Workbench::reserve(std::span<std::byte> values) {
  results_.push_back({values.empty() ? Placed() : place(values.size()), values});
  return results_.back().placed.there;
}

void Workbench::send_last() {
  const auto& [placed, values] = results_.back();
  if (values.empty()) return;
  std::memcpy(placed.here, values.data(), values.size());
  accelerator_->upload(placed.here, values.size(), placed.there);
}

void Workbench::finish() {
  scratch_.clear();
  if (accelerator_ == nullptr) return;
  for (const auto& [placed, values] : results_) {
    if (!values.empty()) accelerator_->download(placed.there, values.size(), placed.here);
  }
  accelerator_->wait(accelerator_->ticket());
  for (const auto& [placed, values] : results_) {
    if (!values.empty()) std::memcpy(values.data(), placed.here, values.size());
  }
  results_.clear();
  for (Block& block : blocks_) block.used = 0;
}

}  // namespace shardtool::kernels

#include "kernels/device/workbench.h"

#include <utility>

namespace shardtool::kernels {

Workbench::Workbench(Accelerator* accelerator, const std::atomic<bool>* cancel)
    : Workbench(accelerator == nullptr ? nullptr : std::make_shared<DeviceMemory>(*accelerator),
                cancel) {}

Workbench::Workbench(std::shared_ptr<DeviceMemory> memory, const std::atomic<bool>* cancel)
    : accelerator_(memory == nullptr ? nullptr : &memory->accelerator()),
      cancel_(cancel),
      memory_(std::move(memory)) {}

void Workbench::copy_there(std::span<const std::byte> values, const std::shared_ptr<Block>& block) {
  if (!values.empty()) memory_->upload(values.data(), values.size(), block->there());
}

std::shared_ptr<DeviceMemory::Block> Workbench::copied(const Block& block, size_t bytes) {
  auto copy = memory_->take(bytes);
  accelerator_->run(BoxCopy{{0, 0, static_cast<i64>(bytes), {}}, block.there(), copy->there()});
  return copy;
}

void Workbench::clear(const std::shared_ptr<Block>& block, size_t bytes) {
  if (block == nullptr) return;
  // Blocks are whole words.
  constexpr size_t kWord = sizeof(std::uint64_t);
  accelerator_->run(Fill<std::uint64_t>{reinterpret_cast<std::uint64_t*>(block->there()),
                                        static_cast<i64>((bytes + kWord - 1) / kWord), 0});
}

std::byte* Workbench::temporary(size_t bytes) {
  return temporary_.emplace_back(memory_->take(bytes))->there();
}

const std::byte* Workbench::upload(std::span<const std::byte> values) {
  if (values.empty()) return nullptr;
  std::byte* const there = temporary(values.size());
  memory_->upload(values.data(), values.size(), there);
  return there;
}

std::byte* Workbench::reserve(std::span<std::byte> values) {
  results_.push_back({memory_->take(values.size()), values});
  return values.empty() ? nullptr : results_.back().there->there();
}

void Workbench::send_last() {
  const auto& [there, values] = results_.back();
  copy_there(values, there);
}

void Workbench::finish() {
  scratch_.clear();
  for (const auto& [there, values] : results_) {
    if (!values.empty()) memory_->download(there->there(), values.size(), values.data());
  }
  results_.clear();
  temporary_.clear();
}

}  // namespace shardtool::kernels

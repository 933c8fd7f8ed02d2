#include "kernels/device/upload_ring.h"

namespace shardtool::kernels {

UploadRing::UploadRing(Accelerator& accelerator, size_t slots)
    : accelerator_(accelerator), slots_(slots) {}

std::byte* UploadRing::begin(size_t bytes) {
  Slot& slot = slots_[current_];
  accelerator_.wait(slot.done);
  if (!slot.memory || slot.memory->size() < bytes) {
    slot.memory.reset();
    slot.memory.emplace(accelerator_, bytes);
  }
  bytes_ = bytes;
  return slot.memory->here();
}

const std::byte* UploadRing::send() {
  const PairedMemory& memory = *slots_[current_].memory;
  if (bytes_ > 0) accelerator_.upload(memory.here(), bytes_, memory.there());
  return memory.there();
}

void UploadRing::end() {
  slots_[current_].done = accelerator_.ticket();
  current_ = (current_ + 1) % slots_.size();
}

}  // namespace shardtool::kernels

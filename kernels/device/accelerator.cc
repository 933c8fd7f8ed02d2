#include "kernels/device/accelerator.h"

#include <utility>

#include "kernels/device/device.h"

namespace shardtool::kernels {

Error no_gpu(const std::string& reason) {
  return Error(ErrorCode::kEngineMissing, "there is no GPU to compute on")
      .note("found", reason)
      .help("see what `shardtool doctor` says; the embedded engine computes on the CPU");
}

Error device_failed(const std::string& call, const std::string& reason) {
  return Error(ErrorCode::kDeviceFailed, "the GPU failed: " + reason)
      .note("call", call)
      .help("see what `shardtool doctor` says; the embedded engine computes on the CPU");
}

PairedMemory::PairedMemory(Accelerator& accelerator, size_t bytes)
    : accelerator_(accelerator), size_(bytes), here_(accelerator.allocate_host(bytes)) {
  try {
    there_ = accelerator.allocate(bytes);
  } catch (...) {
    accelerator.release_host(here_);
    throw;
  }
}

PairedMemory::PairedMemory(PairedMemory&& other) noexcept
    : accelerator_(other.accelerator_),
      size_(std::exchange(other.size_, 0)),
      here_(std::exchange(other.here_, nullptr)),
      there_(std::exchange(other.there_, nullptr)) {}

PairedMemory::~PairedMemory() {
  if (there_ != nullptr) accelerator_.release(there_);
  if (here_ != nullptr) accelerator_.release_host(here_);
}

}  // namespace shardtool::kernels

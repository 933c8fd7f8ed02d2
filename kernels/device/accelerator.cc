#include "kernels/device/accelerator.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "kernels/device/device.h"

namespace shardtool::kernels {
namespace {

/// One word of CMAKE_CUDA_ARCHITECTURES: "90" has machine code and PTX, "90-real" and "90-virtual"
/// one of them; "90a" is for 9.0 alone.
struct Architecture {
  Capability capability;
  bool has_code = true;
  bool has_ptx = true;
  bool is_exact = false;
};

Architecture parse_architecture(std::string_view word) {
  Architecture architecture;
  int number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  architecture.capability = {number / 10, number % 10};
  const std::string_view suffix = word.substr(static_cast<size_t>(end - word.data()));
  architecture.is_exact = suffix.starts_with('a');
  architecture.has_ptx = !suffix.ends_with("-real");
  architecture.has_code = !suffix.ends_with("-virtual");
  return architecture;
}

bool runs_on(const Architecture& built, const Capability& gpu) {
  const Capability& code = built.capability;
  const bool is_equal = code.major == gpu.major && code.minor == gpu.minor;
  if (built.is_exact) return is_equal;
  if (built.has_code && code.major == gpu.major && code.minor <= gpu.minor) return true;
  return built.has_ptx && std::pair(code.major, code.minor) <= std::pair(gpu.major, gpu.minor);
}

}  // namespace

std::string to_string(const Capability& capability) {
  return std::to_string(capability.major) + "." + std::to_string(capability.minor);
}

bool runs_on(std::string_view compiled_for, const Capability& capability) {
  while (!compiled_for.empty()) {
    const size_t end = std::min(compiled_for.find(' '), compiled_for.size());
    if (end > 0 && runs_on(parse_architecture(compiled_for.substr(0, end)), capability))
      return true;
    compiled_for.remove_prefix(std::min(end + 1, compiled_for.size()));
  }
  return false;
}

Error no_gpu(const std::string& reason) {
  return Error(ErrorCode::kEngineMissing, "there is no GPU to compute on")
      .note("found", reason)
      .help("see what `shardtool doctor` says; the embedded engine computes on the CPU");
}

void require_gpu(const DeviceState& state, int index) {
  if (state.count == 0) throw no_gpu(state.reason);
  const std::string number = std::to_string(index);
  if (index >= state.count) {
    throw no_gpu("there are " + std::to_string(state.count) + ", and GPU " + number +
                 " is asked for");
  }
  const Capability& capability = state.capabilities[static_cast<size_t>(index)];
  if (runs_on(state.compiled_for, capability)) return;
  throw no_gpu("GPU " + number + " has compute capability " + to_string(capability) +
               ", and the kernels are built for " + state.compiled_for);
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

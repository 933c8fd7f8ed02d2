#pragma once

#include <cstddef>
#include <string>

struct CUstream_st;

namespace shardtool::kernels {

/// What this build and this machine have of GPUs.
struct DeviceState {
  std::string
      compiled_for;  ///< what nvcc compiled the kernels for; empty: they are not in this build
  int count = 0;
  std::string reason;  ///< why count is 0
};

/// Asks the driver, which takes a while where there is one: not for the start of the program.
DeviceState device_state();

/// What follows is only where kernels are in this build.
namespace gpu {

/// Kernels on one stream run in order (cudaStream_t); null is the device's own.
using Stream = CUstream_st*;

/// Waits until all that was launched on the stream has ended. Throws kPeerLost where one failed.
void wait_for(Stream stream);

/// Bytes on the current device, freed at the end; aligned for any number. What they hold at first
/// is not known. Throws kPeerLost where the device has no room, or where there is none.
class DeviceMemory {
 public:
  explicit DeviceMemory(size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  size_t size() const { return size_; }
  std::byte* bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(bytes_);
  }

  /// size() bytes from or to the host. Waits for all that the device does.
  void upload(const void* from);
  void download(void* to) const;

 private:
  std::byte* bytes_ = nullptr;
  size_t size_ = 0;
};

}  // namespace gpu
}  // namespace shardtool::kernels

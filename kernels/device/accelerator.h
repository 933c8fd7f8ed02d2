#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/device/any_work.h"

namespace shardtool::kernels {

/// The matrix product library (for NativeProducts) with its version, or why there is none.
struct ProductLibrary {
  std::string name;     ///< "cuBLASLt 13.1.0 (libcublasLt.so.13)"; empty if missing
  std::string missing;  ///< the reason; empty if the library was found

  bool is_here() const { return !name.empty(); }
};

/// A compute device with its own memory and one queue: a GPU, or a substitute in tests. Calls that
/// queue an operation return before it is done; operations run in call order. (Not a device of a
/// mesh: one accelerator can compute several of those.)
///
/// A1 the host does not touch host memory that an operation reads or writes until wait() returns
///    for a ticket taken after the operation
/// A2 the host side of a copy comes from allocate_host(); the accelerator side and all pointers of
///    a work come from allocate()
/// A3 a call throws kDeviceFailed if it or an earlier operation failed; results are then invalid
/// A4 calls come from one thread at a time
/// A5 NativeProducts run only after product_library() found a library
class Accelerator {
 public:
  /// Marks a point in the queue: all operations before it.
  using Ticket = std::uint64_t;

  virtual ~Accelerator() = default;

  /// "cuda", and the device's name, "GPU 0: NVIDIA H100".
  virtual std::string backend() const = 0;
  virtual std::string name() const = 0;
  /// Opens the library on the first call. Throws kDeviceFailed if it exists and fails to start.
  virtual ProductLibrary product_library() = 0;

  /// Allocates uninitialised device memory, aligned for any copy unit; null for 0 bytes. Throws
  /// kDeviceFailed if there is not enough memory.
  virtual std::byte* allocate(size_t bytes) = 0;
  /// Allocates host memory for copies to and from the accelerator.
  virtual std::byte* allocate_host(size_t bytes) = 0;
  /// Frees memory after all operations on it have ended.
  virtual void release(std::byte* memory) noexcept = 0;
  virtual void release_host(std::byte* memory) noexcept = 0;

  virtual void upload(const std::byte* from, size_t bytes, std::byte* to) = 0;
  virtual void download(const std::byte* from, size_t bytes, std::byte* to) = 0;
  virtual void run(const AnyWork& work) = 0;

  virtual Ticket ticket() = 0;
  virtual void wait(Ticket ticket) = 0;
};

/// A device buffer and a host buffer of the same size, released together.
class PairedMemory {
 public:
  PairedMemory(Accelerator& accelerator, size_t bytes);
  PairedMemory(PairedMemory&& other) noexcept;
  PairedMemory& operator=(PairedMemory&&) = delete;
  ~PairedMemory();

  size_t size() const { return size_; }
  std::byte* here() const { return here_; }
  std::byte* there() const { return there_; }

 private:
  Accelerator& accelerator_;
  size_t size_ = 0;
  std::byte* here_ = nullptr;
  std::byte* there_ = nullptr;
};

}  // namespace shardtool::kernels

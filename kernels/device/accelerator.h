#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/device/any_work.h"

namespace shardtool::kernels {

/// Whose products NativeProducts are: a library with its version, or why there is none.
struct ProductLibrary {
  std::string name;     ///< "cuBLASLt 13.1.0 (libcublasLt.so.13)"; empty: none
  std::string missing;  ///< why; empty where there is one

  bool is_here() const { return !name.empty(); }
};

/// Something beside the CPU that computes: a GPU, or what tests put in its place. It has memory of
/// its own and one queue. Calls that queue an operation return before it is done; operations run in
/// the order of the calls. (A device of a mesh is something else: several can be computed by one
/// accelerator.)
///
/// A1 until a wait() for a ticket that was taken after an operation returns, the host leaves alone
///    the host memory that the operation reads or writes
/// A2 the host side of a copy is memory of allocate_host(), the accelerator's side and all pointers
///    of a work are within allocate()
/// A3 a call throws kDeviceFailed where it or an operation before it failed; after that nothing
///    that was computed counts
/// A4 calls come from one thread at a time
/// A5 NativeProducts are run only after product_library() found one
class Accelerator {
 public:
  /// Stands for all operations before it.
  using Ticket = std::uint64_t;

  virtual ~Accelerator() = default;

  /// "cuda", and the name of the thing itself, "GPU 0: NVIDIA H100".
  virtual std::string backend() const = 0;
  virtual std::string name() const = 0;
  /// Opened by the first call. Throws kDeviceFailed where it is here and does not begin.
  virtual ProductLibrary product_library() = 0;

  /// Memory of the accelerator, aligned for any unit of a copy; what it holds is not known. Null
  /// for no bytes. Throws kDeviceFailed where there is no room.
  virtual std::byte* allocate(size_t bytes) = 0;
  /// Memory of the host that the accelerator copies from and to.
  virtual std::byte* allocate_host(size_t bytes) = 0;
  /// Wait until operations on the memory have ended.
  virtual void release(std::byte* memory) noexcept = 0;
  virtual void release_host(std::byte* memory) noexcept = 0;

  virtual void upload(const std::byte* from, size_t bytes, std::byte* to) = 0;
  virtual void download(const std::byte* from, size_t bytes, std::byte* to) = 0;
  virtual void run(const AnyWork& work) = 0;

  virtual Ticket ticket() = 0;
  virtual void wait(Ticket ticket) = 0;
};

/// Memory of an accelerator beside as much of the host, released at the end.
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

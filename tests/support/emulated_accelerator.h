#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/device/accelerator.h"
#include "kernels/native/cublaslt.h"
#include "tests/support/work_operands.h"

namespace shardtool::test {

/// Call that must fail, and the number of successful calls before it.
struct PlannedFailure {
  enum class Call { kNone, kAllocate, kAllocateHost, kCopy, kWork };
  Call call = Call::kNone;
  int after = 0;
};

/// A substitute for a GPU: runs the same works on its own thread and in its own memory, which the
/// host cannot access.
///
/// E1 its memory is protected except while an operation that names it runs; adjacent memory is
///    always protected, and an address is never reused
/// E2 fresh memory of both kinds is poisoned
/// E3 kLate: an operation runs only in a wait(), so that code that does not wait, or that changes
///    the source of a copy, always fails; kEager: as soon as possible
/// E4 violations of Accelerator's A2 throw kInternal
class EmulatedAccelerator final : public kernels::Accelerator {
 public:
  enum class Pace { kEager, kLate };

  /// `cublaslt`: file of a library that works on host memory; empty: no library.
  explicit EmulatedAccelerator(Pace pace, PlannedFailure failure = {}, std::string cublaslt = {});
  ~EmulatedAccelerator() override;
  EmulatedAccelerator(const EmulatedAccelerator&) = delete;
  EmulatedAccelerator& operator=(const EmulatedAccelerator&) = delete;

  std::string backend() const override { return "emulated"; }
  std::string name() const override { return "a thread"; }
  kernels::ProductLibrary product_library() override;
  std::byte* allocate(size_t bytes) override;
  std::byte* allocate_host(size_t bytes) override;
  void release(std::byte* memory) noexcept override;
  void release_host(std::byte* memory) noexcept override;
  void upload(const std::byte* from, size_t bytes, std::byte* to) override;
  void download(const std::byte* from, size_t bytes, std::byte* to) override;
  void run(const kernels::AnyWork& work) override;
  Ticket ticket() override;
  void wait(Ticket ticket) override;

  /// Counts so far.
  i64 works() const { return works_; }
  i64 copied_bytes() const { return copied_bytes_; }
  i64 downloads() const { return downloads_; }
  /// Most memory allocated at the same time, on both sides.
  size_t most_bytes() const { return most_bytes_; }
  size_t allocations() const { return memory_.size() + host_memory_.size(); }

 private:
  using Memory = std::map<std::byte*, size_t>;
  struct Range {
    std::byte* begin = nullptr;
    size_t bytes = 0;
  };
  struct Operation {
    std::vector<Range> touches;  ///< accelerator memory in use
    std::function<void()> run;
  };

  void fail_if_planned(PlannedFailure::Call call, const char* name);
  /// Returns the allocation that contains the address; throws kInternal for an unknown address.
  static const Memory::value_type& holder_of(const Memory& memory, const void* address);
  static void require_within(const Memory& memory, const void* address, size_t bytes);
  Range range_of(const void* address) const;
  /// Accelerator memory that the work names, with its allocations.
  std::vector<Range> touched_by(const kernels::AnyWork& work) const;
  template <class Work>
  void perform_work(const Work& work);
  void perform_work(const kernels::NativeProducts& work);
  void add_bytes(size_t bytes);
  void queue(Operation operation);
  void drain() noexcept;
  void serve(const std::stop_token& stop);
  void perform(const Operation& operation);
  /// Opens or protects the pages of one allocation.
  void protect(const Range& range, int protection) const;

  const Pace pace_;
  PlannedFailure failure_;
  const std::string cublaslt_;
  std::unique_ptr<kernels::CublasLt> library_;
  std::byte* arena_ = nullptr;
  size_t used_ = 0;
  Memory memory_, host_memory_;
  i64 works_ = 0;
  i64 copied_bytes_ = 0;
  i64 downloads_ = 0;
  size_t bytes_ = 0;
  size_t most_bytes_ = 0;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Operation> operations_;
  Ticket queued_ = 0;
  Ticket wanted_ = 0;
  Ticket done_ = 0;
  std::exception_ptr thrown_;
  std::jthread thread_;  ///< last member: it uses those above
};

}  // namespace shardtool::test

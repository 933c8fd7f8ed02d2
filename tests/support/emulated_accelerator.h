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

/// Which call is to fail, and after how many that do not.
struct PlannedFailure {
  enum class Call { kNone, kAllocate, kAllocateHost, kCopy, kWork };
  Call call = Call::kNone;
  int after = 0;
};

/// Stands in for a GPU on machines without one: the same works, run by a thread of its own on
/// memory of its own, which the host cannot touch.
///
/// E1 its memory is closed to everybody but while an operation that names it runs; what lies beside
///    it is closed always, and an address is never given out twice
/// E2 fresh memory of both kinds is poisoned
/// E3 kLate: an operation runs only when somebody waits for it, so that what does not wait, or
///    changes what a copy reads, is wrong every time; kEager: as soon as it can
/// E4 what Accelerator's A2 forbids throws kInternal
class EmulatedAccelerator final : public kernels::Accelerator {
 public:
  enum class Pace { kEager, kLate };

  /// `cublaslt`: the file of a library that works on the memory of hosts; empty: there is none.
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

  /// So far.
  i64 works() const { return works_; }
  i64 copied_bytes() const { return copied_bytes_; }
  size_t allocations() const { return memory_.size() + host_memory_.size(); }

 private:
  using Memory = std::map<std::byte*, size_t>;
  struct Range {
    std::byte* begin = nullptr;
    size_t bytes = 0;
  };
  struct Operation {
    std::vector<Range> touches;  ///< of the accelerator's memory
    std::function<void()> run;
  };

  void fail_if_planned(PlannedFailure::Call call, const char* name);
  /// The allocation that holds the address; kInternal for none.
  static const Memory::value_type& holder_of(const Memory& memory, const void* address);
  static void require_within(const Memory& memory, const void* address, size_t bytes);
  Range range_of(const void* address) const;
  /// Memory of the accelerator that the work names, and what is beside it.
  std::vector<Range> touched_by(const kernels::AnyWork& work) const;
  template <class Work>
  void perform_work(const Work& work);
  void perform_work(const kernels::NativeProducts& work);
  void queue(Operation operation);
  void drain() noexcept;
  void serve(const std::stop_token& stop);
  void perform(const Operation& operation);
  /// Opens or closes the pages of one allocation.
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

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Operation> operations_;
  Ticket queued_ = 0;
  Ticket wanted_ = 0;
  Ticket done_ = 0;
  std::exception_ptr thrown_;
  std::jthread thread_;  ///< last: it uses what stands above
};

}  // namespace shardtool::test

#include "tests/support/emulated_accelerator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "kernels/device/device.h"
#include "lib/base/error.h"
#include "tests/kernels/machine.h"

namespace shardtool::test {
namespace {

constexpr size_t kArenaBytes = size_t{1} << 36;
constexpr size_t kPage = 4096;
constexpr size_t kAlignment = 16;
constexpr int kFresh = 0xa5;

size_t rounded(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// Uses the arithmetic of a GPU: threads that share a row, and joins of the threads' results.
template <class Work>
void perform_on_host(kernels::HostMachine& machine, const Work& work) {
  machine.run(work);
}
void perform_on_host(kernels::HostMachine& machine,
                     const kernels::RowProducts<kernels::Field>& work) {
  machine.multiply_rows(work.w, work.map, work.x, work.y);
}
template <class T>
void perform_on_host(kernels::HostMachine& machine, const kernels::RowProducts<T>& work) {
  machine.multiply_rows(work.w, work.x, work.y);
}
void perform_on_host(kernels::HostMachine& machine,
                     const kernels::ColumnProducts<kernels::Field>& work) {
  machine.add_columns(work.w, work.map, work.x, work.y);
}
template <class T>
void perform_on_host(kernels::HostMachine& machine, const kernels::ColumnProducts<T>& work) {
  machine.add_columns(work.w, work.x, work.y);
}
template <class T>
void perform_on_host(kernels::HostMachine& machine, const kernels::Comparison<T>& work) {
  machine.compare(work.rows, work.found);
}
void perform_on_host(kernels::HostMachine& machine, const kernels::BoxCopy& work) {
  machine.strided_copy(work.copy, work.src, work.dst);
}

}  // namespace

EmulatedAccelerator::EmulatedAccelerator(Pace pace, PlannedFailure failure, std::string cublaslt)
    : pace_(pace), failure_(failure), cublaslt_(std::move(cublaslt)) {
  void* const arena =
      ::mmap(nullptr, kArenaBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena == MAP_FAILED) throw std::bad_alloc();
  arena_ = static_cast<std::byte*>(arena);
  thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

EmulatedAccelerator::~EmulatedAccelerator() {
  library_.reset();
  thread_.request_stop();
  thread_.join();
  for (const auto& [memory, size] : host_memory_) std::free(memory);
  ::munmap(arena_, kArenaBytes);
}

kernels::ProductLibrary EmulatedAccelerator::product_library() {
  if (cublaslt_.empty()) return {"", "a thread has no library"};
  return kernels::open_cublaslt(*this, cublaslt_, library_);
}

void EmulatedAccelerator::fail_if_planned(PlannedFailure::Call call, const char* name) {
  if (failure_.call != call || failure_.after-- > 0) return;
  throw kernels::device_failed(name, "as the test planned");
}

std::byte* EmulatedAccelerator::allocate(size_t bytes) {
  fail_if_planned(PlannedFailure::Call::kAllocate, "allocate");
  if (bytes == 0) return nullptr;
  const size_t pages = rounded(bytes, kPage) + kPage;
  if (used_ + pages > kArenaBytes) throw kernels::device_failed("allocate", "no room");
  // Placed so that it ends at a protected page.
  std::byte* const memory = arena_ + used_ + pages - kPage - rounded(bytes, kAlignment);
  used_ += pages;
  memory_[memory] = bytes;
  add_bytes(bytes);
  protect({memory, bytes}, PROT_READ | PROT_WRITE);
  std::memset(memory, kFresh, bytes);
  protect({memory, bytes}, PROT_NONE);
  return memory;
}

std::byte* EmulatedAccelerator::allocate_host(size_t bytes) {
  fail_if_planned(PlannedFailure::Call::kAllocateHost, "allocate_host");
  if (bytes == 0) return nullptr;
  auto* const memory = static_cast<std::byte*>(std::malloc(bytes));
  std::memset(memory, kFresh, bytes);
  host_memory_[memory] = bytes;
  add_bytes(bytes);
  return memory;
}

void EmulatedAccelerator::add_bytes(size_t bytes) {
  bytes_ += bytes;
  most_bytes_ = std::max(most_bytes_, bytes_);
}

void EmulatedAccelerator::drain() noexcept {
  try {
    wait(ticket());
  } catch (...) {
    // The failure is reported to callers of wait().
  }
}

void EmulatedAccelerator::release(std::byte* memory) noexcept {
  drain();
  const auto found = memory_.find(memory);
  if (found == memory_.end()) return;
  // Its address stays protected forever.
  ::madvise(reinterpret_cast<void*>(rounded(reinterpret_cast<size_t>(memory), kPage)),
            (found->second - 1) / kPage * kPage, MADV_DONTNEED);
  bytes_ -= found->second;
  memory_.erase(found);
}

void EmulatedAccelerator::release_host(std::byte* memory) noexcept {
  drain();
  const auto found = host_memory_.find(memory);
  if (found == host_memory_.end()) return;
  bytes_ -= found->second;
  host_memory_.erase(found);
  std::free(memory);
}

const EmulatedAccelerator::Memory::value_type& EmulatedAccelerator::holder_of(const Memory& memory,
                                                                              const void* address) {
  const auto* const byte = static_cast<const std::byte*>(address);
  for (const auto& allocation : memory) {
    if (byte >= allocation.first && byte < allocation.first + allocation.second) return allocation;
  }
  throw Error(ErrorCode::kInternal, "an operation names memory that is not of its kind");
}

void EmulatedAccelerator::require_within(const Memory& memory, const void* address, size_t bytes) {
  const auto& [begin, size] = holder_of(memory, address);
  if (static_cast<const std::byte*>(address) + bytes <= begin + size) return;
  throw Error(ErrorCode::kInternal, "a copy is longer than the memory that it names");
}

EmulatedAccelerator::Range EmulatedAccelerator::range_of(const void* address) const {
  const auto& [begin, size] = holder_of(memory_, address);
  return {begin, size};
}

void EmulatedAccelerator::upload(const std::byte* from, size_t bytes, std::byte* to) {
  require_within(host_memory_, from, bytes);
  require_within(memory_, to, bytes);
  copied_bytes_ += static_cast<i64>(bytes);
  queue({{range_of(to)}, [this, from, bytes, to] {
           fail_if_planned(PlannedFailure::Call::kCopy, "upload");
           std::memcpy(to, from, bytes);
         }});
}

void EmulatedAccelerator::download(const std::byte* from, size_t bytes, std::byte* to) {
  require_within(memory_, from, bytes);
  require_within(host_memory_, to, bytes);
  copied_bytes_ += static_cast<i64>(bytes);
  ++downloads_;
  queue({{range_of(from)}, [this, from, bytes, to] {
           fail_if_planned(PlannedFailure::Call::kCopy, "download");
           std::memcpy(to, from, bytes);
         }});
}

std::vector<EmulatedAccelerator::Range> EmulatedAccelerator::touched_by(
    const kernels::AnyWork& work) const {
  std::vector<Range> touches;
  for (const void* const operand : operands(work)) {
    if (operand != nullptr) touches.push_back(range_of(operand));
  }
  if (std::holds_alternative<kernels::NativeProducts>(work)) {
    touches.push_back(range_of(library_->workspace()));
  }
  return touches;
}

template <class Work>
void EmulatedAccelerator::perform_work(const Work& work) {
  kernels::HostMachine machine;
  perform_on_host(machine, work);
}
void EmulatedAccelerator::perform_work(const kernels::NativeProducts& work) {
  library_->multiply(kernels::gemm_of(work), nullptr);
}

void EmulatedAccelerator::run(const kernels::AnyWork& work) {
  ++works_;
  queue({touched_by(work), [this, work] {
           fail_if_planned(PlannedFailure::Call::kWork, "run");
           std::visit([this](const auto& one) { perform_work(one); }, work);
         }});
}

void EmulatedAccelerator::queue(Operation operation) {
  const std::lock_guard lock(mutex_);
  if (thrown_) std::rethrow_exception(thrown_);
  operations_.push_back(std::move(operation));
  ++queued_;
  if (pace_ == Pace::kEager) wanted_ = queued_;
  changed_.notify_all();
}

EmulatedAccelerator::Ticket EmulatedAccelerator::ticket() {
  const std::lock_guard lock(mutex_);
  return queued_;
}

void EmulatedAccelerator::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  wanted_ = std::max(wanted_, ticket);
  changed_.notify_all();
  changed_.wait(lock, [&] { return done_ >= ticket; });
  if (thrown_) std::rethrow_exception(thrown_);
}

void EmulatedAccelerator::serve(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return done_ < wanted_; })) {
    const Operation operation = std::move(operations_.front());
    operations_.pop_front();
    if (!thrown_) {
      lock.unlock();
      std::exception_ptr thrown;
      try {
        perform(operation);
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      thrown_ = thrown;
    }
    ++done_;
    changed_.notify_all();
  }
}

void EmulatedAccelerator::perform(const Operation& operation) {
  for (const Range& range : operation.touches) protect(range, PROT_READ | PROT_WRITE);
  operation.run();
  for (const Range& range : operation.touches) protect(range, PROT_NONE);
}

void EmulatedAccelerator::protect(const Range& range, int protection) const {
  const auto at = static_cast<size_t>(range.begin - arena_);
  const size_t begin = at / kPage * kPage;
  const size_t end = rounded(at + range.bytes, kPage);
  if (::mprotect(arena_ + begin, end - begin, protection) != 0) throw std::bad_alloc();
}

}  // namespace shardtool::test

#include "lib/comm/nccl/nccl_communicator.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/comm/agreement.h"
#include "lib/comm/group_communicator.h"
#include "lib/comm/machine.h"
#include "lib/comm/nccl/nccl_functions.h"

namespace shardtool::comm {
namespace {

constexpr std::chrono::microseconds kRest{50};
/// Time that an operation has to end after a process that takes part in it has ended: a process
/// may have its results, and end, before the others have theirs.
constexpr std::chrono::seconds kAfterEnd{5};

/// Lengths as messages, and the offsets of ranges of these lengths in one buffer, followed by the
/// total.
std::string length_message(std::uint64_t bytes) {
  return {reinterpret_cast<const char*>(&bytes), sizeof bytes};
}
std::uint64_t length_in(const std::string& message) {
  std::uint64_t bytes = 0;
  if (message.size() != sizeof bytes) throw Error(ErrorCode::kInternal, "a length has no 8 bytes");
  std::memcpy(&bytes, message.data(), sizeof bytes);
  return bytes;
}
std::vector<size_t> offsets_of(const std::vector<std::string>& lengths) {
  std::vector<size_t> offsets{0};
  for (const std::string& length : lengths) offsets.push_back(offsets.back() + length_in(length));
  return offsets;
}

/// True if all ranges between these offsets have the same length.
bool are_equal(const std::vector<size_t>& offsets) {
  const size_t first = offsets[1];
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] != i * first) return false;
  }
  return true;
}

/// NCCL's type for sums; nullopt if it has none.
std::optional<ncclDataType_t> sum_type_of(Dtype type) {
  switch (type) {
    case Dtype::kF16:
      return ncclFloat16;
    case Dtype::kBF16:
      return ncclBfloat16;
    case Dtype::kF32:
      return ncclFloat32;
    case Dtype::kF64:
      return ncclFloat64;
    default:
      return std::nullopt;
  }
}

/// Group of all processes of `control` that sends large collectives over NCCL.
class NcclCommunicator final : public GroupCommunicator {
 public:
  NcclCommunicator(std::shared_ptr<const Libraries> libraries, int device,
                   std::unique_ptr<Communicator> control)
      : GroupCommunicator(*control),
        control_(std::move(control)),
        libraries_(std::move(libraries)),
        device_(device),
        sent_(*libraries_),
        received_(*libraries_) {
    try {
      run_or_abort(*this, [this] { begin_nccl(); });
      set_deadline(kForever, kForever);  // others may compute; their end is seen without a deadline
    } catch (const Error&) {
      end_nccl();
      throw;
    }
  }

  ~NcclCommunicator() override { end_nccl(); }

  bool has_native_sums(Dtype type) const override { return sum_type_of(type).has_value(); }

 protected:
  std::vector<std::string> do_all_gather(std::string_view mine) override {
    use_device();
    const auto offsets = offsets_of(GroupCommunicator::do_all_to_all(
        std::vector<std::string>(static_cast<size_t>(size()), length_message(mine.size()))));
    char* const device = received_.of(offsets.back());
    const auto at = [&](int rank) { return offsets[static_cast<size_t>(rank)]; };
    copy(device + at(rank()), mine.data(), mine.size(), cudaMemcpyHostToDevice);
    group([&] {
      if (are_equal(offsets)) {
        return check(api().ncclAllGather(device + at(rank()), device, mine.size(), ncclUint8, comm_,
                                         stream_));
      }
      // NCCL gathers equal parts only.
      for (int root = 0; root < size(); ++root) {
        const size_t bytes = at(root + 1) - at(root);
        char* const part = device + at(root);
        if (bytes > 0)
          check(api().ncclBroadcast(part, part, bytes, ncclUint8, root, comm_, stream_));
      }
    });
    return fetch(device, offsets);
  }

  std::string do_broadcast(int from, std::string bytes) override {
    use_device();
    const auto length =
        length_in(GroupCommunicator::do_broadcast(from, length_message(bytes.size())));
    bytes.resize(length);
    if (length == 0) return bytes;
    char* const device = received_.of(length);
    if (rank() == from) copy(device, bytes.data(), length, cudaMemcpyHostToDevice);
    group([&] {
      check(api().ncclBroadcast(device, device, length, ncclUint8, from, comm_, stream_));
    });
    wait_for_stream();
    copy(bytes.data(), device, length, cudaMemcpyDeviceToHost);
    wait_for_stream();
    return bytes;
  }

  std::vector<std::string> do_all_to_all(std::vector<std::string> to_each) override {
    use_device();
    std::vector<std::string> lengths;
    for (const std::string& one : to_each) lengths.push_back(length_message(one.size()));
    const auto out = offsets_of(lengths);
    const auto in = offsets_of(GroupCommunicator::do_all_to_all(std::move(lengths)));
    char* const sending = sent_.of(out.back());
    char* const receiving = received_.of(in.back());
    for (size_t to = 0; to < to_each.size(); ++to) {
      copy(sending + out[to], to_each[to].data(), to_each[to].size(), cudaMemcpyHostToDevice);
    }
    group([&] {
      for (int peer = 0; peer < size(); ++peer) {
        const auto i = static_cast<size_t>(peer);
        const size_t to = out[i + 1] - out[i];
        const size_t from = in[i + 1] - in[i];
        if (to > 0) check(api().ncclSend(sending + out[i], to, ncclUint8, peer, comm_, stream_));
        if (from > 0) {
          check(api().ncclRecv(receiving + in[i], from, ncclUint8, peer, comm_, stream_));
        }
      }
    });
    return fetch(receiving, in);
  }

  void do_native_all_reduce(Dtype type, std::span<std::byte> values) override {
    if (values.empty()) return;
    use_device();
    char* const device = received_.of(values.size());
    copy(device, values.data(), values.size(), cudaMemcpyHostToDevice);
    group([&] {
      check(api().ncclAllReduce(device, device, count_of(type, values.size()), *sum_type_of(type),
                                ncclSum, comm_, stream_));
    });
    wait_for_stream();
    copy(values.data(), device, values.size(), cudaMemcpyDeviceToHost);
    wait_for_stream();
  }

  std::string do_native_reduce_scatter(Dtype type, std::string_view values) override {
    std::string part(values.size() / static_cast<size_t>(size()), '\0');
    if (part.empty()) return part;
    use_device();
    char* const sending = sent_.of(values.size());
    char* const receiving = received_.of(part.size());
    copy(sending, values.data(), values.size(), cudaMemcpyHostToDevice);
    group([&] {
      check(api().ncclReduceScatter(sending, receiving, count_of(type, part.size()),
                                    *sum_type_of(type), ncclSum, comm_, stream_));
    });
    wait_for_stream();
    copy(part.data(), receiving, part.size(), cudaMemcpyDeviceToHost);
    wait_for_stream();
    return part;
  }

  std::unique_ptr<Communicator> do_split(std::vector<int> members, Channel first) override {
    auto control = std::make_unique<GroupCommunicator>(*this, std::move(members), first);
    return std::make_unique<NcclCommunicator>(libraries_, device_, std::move(control));
  }

 private:
  const Libraries& api() const { return *libraries_; }

  static size_t count_of(Dtype type, size_t bytes) {
    return bytes / static_cast<size_t>(bits(type) / 8);
  }

  /// The current device is per thread.
  void use_device() const { api().check(api().cudaSetDevice(device_), "cudaSetDevice"); }

  /// The first process creates the NCCL id and broadcasts it over `control`.
  void begin_nccl() {
    use_device();
    api().check(api().cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                "cudaStreamCreateWithFlags");
    ncclUniqueId id{};
    std::string text(sizeof id, '\0');
    if (rank() == 0) {
      check(api().ncclGetUniqueId(&id));
      std::memcpy(text.data(), &id, sizeof id);
    }
    text = GroupCommunicator::do_broadcast(0, std::move(text));
    std::memcpy(&id, text.data(), std::min(text.size(), sizeof id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    check(api().ncclCommInitRankConfig(&comm_, size(), id, rank(), &config));
    wait_for_nccl();
  }

  /// Aborts NCCL after a failure, so that the others stop waiting.
  void end_nccl() noexcept {
    if (comm_ != nullptr && !failed_) finish();
    if (comm_ != nullptr) failed_ ? api().ncclCommAbort(comm_) : api().ncclCommDestroy(comm_);
    if (stream_ != nullptr) api().cudaStreamDestroy(stream_);
  }

  void finish() noexcept {
    try {
      require_others();
      check(api().ncclCommFinalize(comm_));
      wait_for_nccl();
    } catch (const Error&) {
      failed_ = true;
    }
  }

  template <class Calls>
  void group(const Calls& calls) {
    check(api().ncclGroupStart());
    try {
      calls();
    } catch (const Error&) {
      // An open group would queue the abort that follows.
      api().ncclGroupEnd();
      throw;
    }
    check(api().ncclGroupEnd());
    wait_for_nccl();
  }

  void copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    if (bytes == 0) return;
    api().check(api().cudaMemcpyAsync(to, from, bytes, kind, stream_), "cudaMemcpyAsync");
  }

  std::vector<std::string> fetch(const char* device, const std::vector<size_t>& offsets) {
    // Copies to pageable memory block in the runtime, so wait for NCCL first.
    wait_for_stream();
    std::vector<std::string> parts;
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      parts.emplace_back(offsets[i + 1] - offsets[i], '\0');
      copy(parts[i].data(), device + offsets[i], parts[i].size(), cudaMemcpyDeviceToHost);
    }
    wait_for_stream();
    return parts;
  }

  /// Accepts a call in progress; wait_for_nccl() checks its result.
  void check(ncclResult_t result) {
    if (result == ncclSuccess || result == ncclInProgress) return;
    fail(fmt::format("NCCL: {}", api().ncclGetErrorString(result)));
  }

  /// Polls until `done`; throws when another process aborts, one of this group has ended, or the
  /// deadline passes.
  template <class Done>
  void wait(const Done& done) {
    const auto end = wait_end();
    std::optional<Clock::time_point> end_without_peer;
    while (!done()) {
      try {
        check_interrupted();
        require_others();
        require_members(end_without_peer);
      } catch (const Error&) {
        failed_ = true;
        throw;
      }
      if (end && Clock::now() >= *end) {
        fail(fmt::format("NCCL did not end {} in time", operation_name()));
      }
      std::this_thread::sleep_for(kRest);
    }
  }

  /// Throws if a process of this group has ended, kAfterEnd after this was first seen: at `end`.
  void require_members(std::optional<Clock::time_point>& end) {
    for (int peer = 0; peer < size(); ++peer) {
      auto lost = peer == rank() ? std::nullopt : loss(peer);
      if (!lost) continue;
      if (!end) end = Clock::now() + kAfterEnd;
      if (Clock::now() < *end) return;
      abort(*lost);
      throw *std::move(lost);
    }
  }

  bool nccl_is_ready() {
    ncclResult_t state = ncclSuccess;
    check(api().ncclCommGetAsyncError(comm_, &state));
    check(state);
    return state == ncclSuccess;
  }

  void wait_for_nccl() {
    wait([&] { return nccl_is_ready(); });
  }

  void wait_for_stream() {
    wait([&] {
      nccl_is_ready();
      const cudaError_t state = api().cudaStreamQuery(stream_);
      if (state != cudaErrorNotReady) api().check(state, "cudaStreamQuery");
      return state == cudaSuccess;
    });
  }

  [[noreturn]] void fail(const std::string& reason) {
    failed_ = true;
    Error error(ErrorCode::kPeerLost,
                fmt::format("process {} of {} failed: {}", rank(), size(), reason));
    abort(error);
    throw error;
  }

  const std::unique_ptr<Communicator> control_;
  const std::shared_ptr<const Libraries> libraries_;  ///< shared with the groups split off
  const int device_;
  DeviceBuffer sent_;
  DeviceBuffer received_;
  cudaStream_t stream_ = nullptr;
  ncclComm_t comm_ = nullptr;
  bool failed_ = false;
};

int visible_gpus(const Libraries& api) {
  int devices = 0;
  const cudaError_t state = api.cudaGetDeviceCount(&devices);
  if (state == cudaSuccess) return devices;
  throw engine_missing(fmt::format("cudaGetDeviceCount: {}", api.cudaGetErrorString(state)));
}

/// Identifies a GPU of this machine, whatever number a process sees it under.
std::string bus_id_of(const Libraries& api, int device) {
  std::array<char, 32> id{};
  api.check(api.cudaDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), device),
            "cudaDeviceGetPCIBusId");
  return id.data();
}

/// Throws kEngineMissing if two processes of one machine have the same GPU.
void require_own_gpus(Communicator& control, const std::string& bus_id) {
  const std::vector<std::string> gpus = control.all_gather(machine_name() + " " + bus_id);
  for (size_t process = 0; process < gpus.size(); ++process) {
    const auto first = std::ranges::find(gpus, gpus[process]) - gpus.begin();
    if (first == static_cast<std::ptrdiff_t>(process)) continue;
    throw engine_missing(fmt::format("processes {} and {} of one machine have the same GPU, {}",
                                     first, process, bus_id))
        .help("start as many processes as there are GPUs: NCCL takes one for each");
  }
}

}  // namespace

std::string found_nccl(const NcclLibraries& files) {
  const Libraries libraries(files);
  // NCCL's factor is 10,000 per major version; CUDA's are 1,000 per major, 10 per minor version.
  int nccl = 0;
  int cuda = 0;
  if (libraries.ncclGetVersion(&nccl) != ncclSuccess) throw engine_missing("ncclGetVersion fails");
  libraries.check(libraries.cudaRuntimeGetVersion(&cuda), "cudaRuntimeGetVersion");
  return fmt::format("NCCL {}.{}.{} and CUDA runtime {}.{}, {} and {}", nccl / 10'000,
                     nccl / 100 % 100, nccl % 100, cuda / 1'000, cuda / 10 % 100,
                     libraries.nccl.name(), libraries.cuda.name());
}

std::unique_ptr<Communicator> open_nccl(std::unique_ptr<Communicator> control,
                                        const NcclLibraries& files) {
  std::shared_ptr<const Libraries> libraries;
  int device = 0;
  tell_interruption(*control, [&] {
    const int rank = rank_on_machine(*control);
    std::string bus_id;
    all_do(*control, [&] {
      libraries = std::make_shared<const Libraries>(files);
      device = gpu_of(rank, visible_gpus(*libraries));
      bus_id = bus_id_of(*libraries, device);
    });
    require_own_gpus(*control, bus_id);
  });
  return std::make_unique<NcclCommunicator>(std::move(libraries), device, std::move(control));
}

}  // namespace shardtool::comm

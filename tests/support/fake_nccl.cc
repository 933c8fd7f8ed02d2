// A fake of NCCL and the CUDA runtime for machines without a GPU: ranks are threads of one process,
// device memory is host memory, streams run when they are queried. Tests control it by fake_nccl_*.

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/decode/decode.h"
#include "kernels/encode/encode.h"

struct ncclComm {
  std::uint64_t id;
  int rank;
  int size;
};

namespace {

using shardtool::Dtype;

/// A queued operation: tries to end, and tells if it has.
using Operation = std::function<bool()>;

std::mutex mutex;
std::map<std::tuple<std::uint64_t, int, int>, std::deque<std::string>> messages;
std::map<std::uint64_t, int> joined;
std::map<cudaStream_t, std::list<Operation>> streams;
std::uint64_t ids = 0;
std::atomic<int> devices = 8;
std::atomic<bool> gpus_are_one = false;
std::atomic<bool> sends_fail = false;
thread_local int open_groups = 0;
std::atomic<int> aborts_in_groups = 0;
std::atomic<bool> stalls = false;
std::atomic<bool> fails = false;
std::atomic<bool> copies_fail = false;
std::atomic<int> failing_device = -1;
thread_local int current_device = 0;
std::atomic<int> aborts = 0;
std::atomic<std::uint64_t> bytes_put = 0;

std::atomic<int> sums = 0;
std::atomic<std::uint64_t> bytes_summed = 0;
std::atomic<int> gathers = 0;

void put(const ncclComm* comm, int to, const void* bytes, size_t count) {
  bytes_put += count;
  messages[{comm->id, comm->rank, to}].emplace_back(static_cast<const char*>(bytes), count);
}

void put_to_others(const ncclComm* comm, const void* bytes, size_t count) {
  for (int peer = 0; peer < comm->size; ++peer) {
    if (peer != comm->rank) put(comm, peer, bytes, count);
  }
}

/// Takes the next message from a rank.
Operation take(ncclComm* comm, int from, void* to_here, size_t bytes) {
  return [=] {
    auto& waiting = messages[{comm->id, from, comm->rank}];
    if (waiting.empty()) return false;
    if (waiting.front().size() != bytes) std::abort();  // ranks disagree about a length
    std::memcpy(to_here, waiting.front().data(), bytes);
    waiting.pop_front();
    return true;
  };
}

std::optional<Dtype> dtype_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat16:
      return Dtype::kF16;
    case ncclBfloat16:
      return Dtype::kBF16;
    case ncclFloat32:
      return Dtype::kF32;
    default:
      return std::nullopt;
  }
}

/// Adds from the last rank to the first and rounds every sum, as NCCL may and no other engine does.
void sum_parts(Dtype type, const std::vector<std::string>& parts, size_t begin, size_t count,
               void* to) {
  const auto width = static_cast<size_t>(shardtool::bits(type) / 8);
  std::vector<float> sum(count);
  std::vector<float> part(count);
  for (size_t rank = parts.size(); rank-- > 0;) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(parts[rank].data());
    const auto n = static_cast<shardtool::i64>(count);
    shardtool::kernels::to_floats(type, bytes + begin * width, n, part.data());
    for (size_t i = 0; i < count; ++i) sum[i] += part[i];
    shardtool::kernels::from_floats(type, sum.data(), n, static_cast<std::byte*>(to));
    shardtool::kernels::to_floats(type, static_cast<const std::byte*>(to), n, sum.data());
  }
}

/// Sums [begin, begin + count) of all ranks' `total` numbers into `to`.
ncclResult_t sum(const void* from, void* to, size_t total, size_t begin, size_t count,
                 ncclDataType_t type, ncclRedOp_t op, ncclComm* comm, cudaStream_t stream) {
  const std::optional<Dtype> dtype = dtype_of(type);
  if (!dtype || op != ncclSum) return ncclInvalidArgument;
  const size_t bytes = total * static_cast<size_t>(shardtool::bits(*dtype) / 8);
  ++sums;
  bytes_summed += bytes;
  const std::lock_guard lock(mutex);
  put_to_others(comm, from, bytes);
  const auto parts = std::make_shared<std::vector<std::string>>(
      static_cast<size_t>(comm->size), std::string(static_cast<const char*>(from), bytes));
  for (int peer = 0; peer < comm->size; ++peer) {
    if (peer == comm->rank) continue;
    streams[stream].push_back(take(comm, peer, (*parts)[static_cast<size_t>(peer)].data(), bytes));
  }
  streams[stream].push_back([=] {
    sum_parts(*dtype, *parts, begin, count, to);
    return true;
  });
  return ncclSuccess;
}

}  // namespace

extern "C" {

void fake_nccl_devices(int count) {
  devices = count;
}
void fake_nccl_stalls(bool yes) {
  stalls = yes;
}
void fake_nccl_fails(bool yes) {
  fails = yes;
}
void fake_nccl_copies_fail(bool yes) {
  copies_fail = yes;
}
/// No stream can be made on this device.
void fake_nccl_fails_on(int device) {
  failing_device = device;
}
void fake_nccl_gpus_are_one(bool yes) {
  gpus_are_one = yes;
}
/// Sends and broadcasts fail inside their group.
void fake_nccl_sends_fail(bool yes) {
  sends_fail = yes;
}
int fake_nccl_aborts() {
  return aborts;
}
/// Aborts that were called while a group was open.
int fake_nccl_aborts_in_groups() {
  return aborts_in_groups;
}
/// Calls of ncclAllReduce and ncclReduceScatter so far, by all ranks, and the bytes given to them.
int fake_nccl_sums() {
  return sums;
}
std::uint64_t fake_nccl_bytes_summed() {
  return bytes_summed;
}
int fake_nccl_gathers() {
  return gathers;
}
/// Bytes that ranks have sent to others so far.
std::uint64_t fake_nccl_bytes() {
  return bytes_put;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13'020;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = devices;
  return devices > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaSetDevice(int device) {
  current_device = device;
  return device < devices ? cudaSuccess : cudaErrorInvalidDevice;
}
/// Each process sees its own GPUs from number 0, so a number is a GPU of the calling thread.
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  static std::atomic<int> calls = 0;
  const int number = gpus_are_one ? 0 : devices == 1 ? ++calls : device;
  std::snprintf(id, static_cast<size_t>(length), "0000:%02x:00.0", number);
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorNoDevice ? "no CUDA-capable device is detected" : "an error";
}
cudaError_t cudaMalloc(void** data, size_t bytes) {
  *data = std::malloc(bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  if (copies_fail) return cudaErrorECCUncorrectable;
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int) {
  if (current_device == failing_device) return cudaErrorECCUncorrectable;
  *stream = reinterpret_cast<cudaStream_t>(new char);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  streams.erase(stream);  // a later stream may get its address
  delete reinterpret_cast<char*>(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  if (stalls) return cudaErrorNotReady;
  auto& waiting = streams[stream];
  while (!waiting.empty() && waiting.front()()) waiting.pop_front();
  return waiting.empty() ? cudaSuccess : cudaErrorNotReady;
}

ncclResult_t ncclGetVersion(int* version) {
  *version = 22'803;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(mutex);
  ++ids;
  std::memcpy(id->internal, &ids, sizeof ids);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidArgument;
  const std::lock_guard lock(mutex);
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  *comm = new ncclComm{number, rank, size};
  ++joined[number];
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(mutex);
  *state = fails ? ncclSystemError : joined[comm->id] < comm->size ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t) {
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  ++aborts;
  if (open_groups > 0) ++aborts_in_groups;
  delete comm;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) {
  return "unhandled system error";
}
ncclResult_t ncclGroupStart() {
  ++open_groups;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  --open_groups;
  return ncclInProgress;
}
ncclResult_t ncclSend(const void* bytes, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t) {
  const std::lock_guard lock(mutex);
  put(comm, peer, bytes, count);
  return ncclSuccess;
}
ncclResult_t ncclRecv(void* bytes, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  streams[stream].push_back(take(comm, peer, bytes, count));
  return ncclSuccess;
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  if (sends_fail) return ncclSystemError;
  const std::lock_guard lock(mutex);
  if (comm->rank != root) {
    streams[stream].push_back(take(comm, root, to, count));
    return ncclSuccess;
  }
  put_to_others(comm, from, count);
  return ncclSuccess;
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  if (sends_fail) return ncclSystemError;
  if (type != ncclUint8) return ncclInvalidArgument;
  ++gathers;
  const std::lock_guard lock(mutex);
  put_to_others(comm, from, count);
  for (int peer = 0; peer < comm->size; ++peer) {
    char* const part = static_cast<char*>(to) + static_cast<size_t>(peer) * count;
    if (peer != comm->rank) {
      streams[stream].push_back(take(comm, peer, part, count));
    } else if (part != from) {
      std::memcpy(part, from, count);
    }
  }
  return ncclSuccess;
}
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return sum(from, to, count, 0, count, type, op, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  const auto size = static_cast<size_t>(comm->size);
  return sum(from, to, size * count, static_cast<size_t>(comm->rank) * count, count, type, op, comm,
             stream);
}

}  // extern "C"

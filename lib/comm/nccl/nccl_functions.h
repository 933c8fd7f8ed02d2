#pragma once

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/dynamic_library.h"
#include "lib/base/error.h"
#include "lib/comm/nccl/nccl_libraries.h"

/// For nccl_communicator.cc, which is built where the headers of NCCL and CUDA are.
namespace shardtool::comm {

/// Functions in use, by their own names and types.
struct Libraries {
  explicit Libraries(const NcclLibraries& files)
      : cuda(open("the CUDA runtime",
                  files.cuda_runtime.empty()
                      ? std::vector<std::string>{"libcudart.so.13", "libcudart.so.12",
                                                 "libcudart.so.11.0"}
                      : std::vector<std::string>{files.cuda_runtime})),
        nccl(open("NCCL", {files.nccl.empty() ? "libnccl.so.2" : files.nccl})) {}

  static DynamicLibrary open(const char* what, const std::vector<std::string>& names) {
    try {
      return DynamicLibrary(what, with_nvidia_wheels(names));
    } catch (Error& error) {
      error.help("install it, or, beside the Python module, the extra `cuda`");
      throw;
    }
  }

  DynamicLibrary cuda;
  DynamicLibrary nccl;

#define SHARDTOOL_FUNCTION(library, name) \
  decltype(&::name) name = library.function<decltype(&::name)>(#name)
  // cudaMalloc has a C++ overload, which no library exports.
  using Malloc = cudaError_t (*)(void**, size_t);
  Malloc cudaMalloc = cuda.function<Malloc>("cudaMalloc");
  SHARDTOOL_FUNCTION(cuda, cudaRuntimeGetVersion);
  SHARDTOOL_FUNCTION(cuda, cudaGetDeviceCount);
  SHARDTOOL_FUNCTION(cuda, cudaSetDevice);
  SHARDTOOL_FUNCTION(cuda, cudaDeviceGetPCIBusId);
  SHARDTOOL_FUNCTION(cuda, cudaGetErrorString);
  SHARDTOOL_FUNCTION(cuda, cudaFree);
  SHARDTOOL_FUNCTION(cuda, cudaMemcpyAsync);
  SHARDTOOL_FUNCTION(cuda, cudaStreamCreateWithFlags);
  SHARDTOOL_FUNCTION(cuda, cudaStreamDestroy);
  SHARDTOOL_FUNCTION(cuda, cudaStreamQuery);
  SHARDTOOL_FUNCTION(nccl, ncclGetVersion);
  SHARDTOOL_FUNCTION(nccl, ncclGetUniqueId);
  SHARDTOOL_FUNCTION(nccl, ncclCommInitRankConfig);
  SHARDTOOL_FUNCTION(nccl, ncclCommGetAsyncError);
  SHARDTOOL_FUNCTION(nccl, ncclCommFinalize);
  SHARDTOOL_FUNCTION(nccl, ncclCommDestroy);
  SHARDTOOL_FUNCTION(nccl, ncclCommAbort);
  SHARDTOOL_FUNCTION(nccl, ncclGetErrorString);
  SHARDTOOL_FUNCTION(nccl, ncclGroupStart);
  SHARDTOOL_FUNCTION(nccl, ncclGroupEnd);
  SHARDTOOL_FUNCTION(nccl, ncclAllGather);
  SHARDTOOL_FUNCTION(nccl, ncclAllReduce);
  SHARDTOOL_FUNCTION(nccl, ncclBroadcast);
  SHARDTOOL_FUNCTION(nccl, ncclReduceScatter);
  SHARDTOOL_FUNCTION(nccl, ncclSend);
  SHARDTOOL_FUNCTION(nccl, ncclRecv);
#undef SHARDTOOL_FUNCTION

  void check(cudaError_t result, const char* call) const {
    if (result == cudaSuccess) return;
    throw Error(ErrorCode::kDeviceFailed, fmt::format("{}: {}", call, cudaGetErrorString(result)));
  }
};

/// Device memory that grows to the requested size.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(const Libraries& api) : api_(api) {}
  ~DeviceBuffer() { api_.cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  char* of(size_t bytes) {
    if (bytes <= bytes_) return static_cast<char*>(data_);
    api_.check(api_.cudaFree(std::exchange(data_, nullptr)), "cudaFree");
    bytes_ = 0;
    api_.check(api_.cudaMalloc(&data_, bytes), "cudaMalloc");
    bytes_ = bytes;
    return static_cast<char*>(data_);
  }

 private:
  const Libraries& api_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace shardtool::comm

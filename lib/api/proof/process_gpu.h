#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "kernels/device/accelerator.h"
#include "lib/comm/communicator.h"
#include "lib/comm/engine_choice.h"

namespace shardtool::api {

/// The engine whose ranks are one process and compute on its GPUs.
inline constexpr std::string_view kGpuVirtualName = "gpu-virtual";

/// Opens the GPU of this process, one for each process of a machine; see comm::gpu_of. All
/// processes call it, and all throw kEngineMissing or kDeviceFailed if one has no GPU that works.
std::unique_ptr<kernels::Accelerator> open_own_gpu(comm::Communicator& comm);

/// Opens a GPU for a rank of this process. Ranks take the visible GPUs in turn, so that several may
/// have the same, each with a queue of its own. Throws like open_own_gpu.
std::unique_ptr<kernels::Accelerator> open_gpu_of_rank(int rank);

/// Opens all GPUs that this process sees. Throws like open_own_gpu if there is none, or if one of
/// them does not work.
std::vector<std::unique_ptr<kernels::Accelerator>> open_all_gpus();

/// Throws kUsage if a launcher started processes for an engine that is a single one.
void require_one_process(const comm::EngineChoice& choice, std::string_view engine);

}  // namespace shardtool::api

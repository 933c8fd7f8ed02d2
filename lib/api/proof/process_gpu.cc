#include "lib/api/proof/process_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "kernels/device/device.h"
#include "lib/base/error.h"
#include "lib/comm/agreement.h"
#include "lib/comm/machine.h"

namespace shardtool::api {

std::unique_ptr<kernels::Accelerator> open_own_gpu(comm::Communicator& comm) {
  const int rank = comm::rank_on_machine(comm);
  std::unique_ptr<kernels::Accelerator> gpu;
  comm::all_do(comm, [&] {
    const int count = kernels::device_state().count;
    gpu = kernels::open_accelerator(count > 0 ? comm::gpu_of(rank, count) : 0);
  });
  return gpu;
}

std::unique_ptr<kernels::Accelerator> open_gpu_of_rank(int rank) {
  return kernels::open_accelerator(rank % std::max(kernels::device_state().count, 1));
}

std::vector<std::unique_ptr<kernels::Accelerator>> open_all_gpus() {
  std::vector<std::unique_ptr<kernels::Accelerator>> gpus;
  const int count = kernels::device_state().count;
  do {
    gpus.push_back(kernels::open_accelerator(static_cast<int>(gpus.size())));
  } while (std::ssize(gpus) < count);
  return gpus;
}

void require_one_process(const comm::EngineChoice& choice, std::string_view engine) {
  if (!choice.launch) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} started {} processes, and the {} engine is one",
                                             choice.launch->launcher, choice.launch->size, engine))
      .help("use --engine tcp, --engine mpi or --engine nccl, or start one process");
}

}  // namespace shardtool::api

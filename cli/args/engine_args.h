#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "lib/base/checked.h"
#include "lib/comm/engine_choice.h"

namespace shardtool::cli {

/// Maximum number of ranks that one process runs.
inline constexpr i64 kMostRanks = 64;

/// This process plays all devices, on a GPU: `validate` has it beside the engines.
inline constexpr std::string_view kGpuVirtual = "gpu-virtual";

/// Implementation of the devices, as typed.
struct EngineArgs {
  std::optional<std::string> engine = {};
  std::optional<std::string> meeting = {};
  std::optional<std::string> mpi_plugin = {};
  std::optional<std::string> nccl = {};
  std::optional<std::string> cuda_runtime = {};

  bool is_gpu_virtual() const { return engine == kGpuVirtual; }
};

std::vector<Argument> engine_arguments(EngineArgs& args);

/// Returns the typed options with the launch of this process. Throws kUsage.
comm::EngineChoice to_engine(const EngineArgs& args);

/// Runs what a process does before it meets the others of its launch, which hear of its error:
/// comm::before_meeting. Without a meeting it is alone.
void before_meeting(const std::optional<comm::EngineChoice>& meeting,
                    const std::function<void()>& work);

}  // namespace shardtool::cli

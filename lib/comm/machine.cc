#include "lib/comm/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include "lib/base/dynamic_library.h"

namespace shardtool::comm {

std::string machine_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  return host.data() + (" " + boot);
}

int gpu_of(int rank_on_machine, int visible_gpus) {
  if (visible_gpus == 1) return 0;
  if (rank_on_machine < visible_gpus) return rank_on_machine;
  throw engine_missing(fmt::format("there are {} GPUs for {} or more processes of one machine",
                                   visible_gpus, rank_on_machine + 1))
      .help("start as many processes as there are GPUs: each takes one");
}

int rank_on_machine(Communicator& comm) {
  const auto machines = comm.all_gather(machine_name());
  const auto mine = machines.begin() + comm.rank();
  return static_cast<int>(std::count(machines.begin(), mine, *mine));
}

}  // namespace shardtool::comm

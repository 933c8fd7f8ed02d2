#include "lib/comm/machine.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

namespace shardtool::comm {
namespace {

/// Identifies this machine until its next boot.
std::string machine_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  return host.data() + (" " + boot);
}

}  // namespace

int rank_on_machine(Communicator& comm) {
  const auto machines = comm.all_gather(machine_name());
  const auto mine = machines.begin() + comm.rank();
  return static_cast<int>(std::count(machines.begin(), mine, *mine));
}

}  // namespace shardtool::comm

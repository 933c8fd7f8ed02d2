#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "shardtool/comm/tcp_communicator.h"
#include "tests/support/temp_folder.h"

namespace shardtool::comm {

/// Runs `process` as each of `size` processes, in threads that meet over TCP.
inline void run_processes(int size, const std::function<void(Communicator&)>& process) {
  const test::TempFolder folder;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto comm = meet(folder / "meeting", rank, size, std::chrono::seconds(20));
      process(*comm);
    });
  }
}

}  // namespace shardtool::comm

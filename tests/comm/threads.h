#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "lib/comm/tcp/tcp_communicator.h"
#include "tests/support/temp_folder.h"

namespace shardtool::comm {

/// Runs `process` in `size` threads that meet over TCP. Throws the error of the lowest failed rank.
inline void run_processes(int size, const std::function<void(Communicator&)>& process) {
  const test::TempFolder folder;
  std::vector<std::exception_ptr> thrown(static_cast<size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          const auto comm = meet(folder / "meeting", rank, size, std::chrono::seconds(20));
          process(*comm);
        } catch (...) {
          thrown[static_cast<size_t>(rank)] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& one : thrown) {
    if (one) std::rethrow_exception(one);
  }
}

}  // namespace shardtool::comm

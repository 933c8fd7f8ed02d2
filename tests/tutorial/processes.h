#pragma once

#include <doctest/doctest.h>

#include <iostream>
#include <string>

#include "tests/comm/launched.h"

// Engines with several processes, which run process.cc.
struct Tcp {
  static constexpr const char* kName = "tcp";
};
struct Mpi {
  static constexpr const char* kName = "mpi";
};
TYPE_TO_STRING(Tcp);
TYPE_TO_STRING(Mpi);

/// True if the engine can be tested here; prints the reason if not.
template <class Processes>
bool can_run() {
  const std::string reason = shardtool::comm::reason_to_skip(Processes::kName);
  if (!reason.empty()) std::cout << "SKIPPED: " << reason << "\n";
  return reason.empty();
}

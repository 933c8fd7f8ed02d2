#pragma once

#include <iostream>
#include <string>

#include "tests/support/stand_in.h"

namespace shardtool::test {

/// Path of the library of fake_nccl.cc, for NcclLibraries; empty in a build without NCCL's headers.
inline const std::string kFakeNccl = SHARDTOOL_FAKE_NCCL;

/// Returns true if the library exists; else prints that the test is skipped.
inline bool has_fake_nccl() {
  if (kFakeNccl.empty()) std::cout << "SKIPPED: no nccl.h when this was built\n";
  return !kFakeNccl.empty();
}

/// Calls a control function of fake_nccl.cc.
template <class Result, class... Args>
Result turn(const char* knob, Args... args) {
  return turn<Result>(kFakeNccl, knob, args...);
}

}  // namespace shardtool::test

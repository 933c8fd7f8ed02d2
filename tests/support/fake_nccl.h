#pragma once

#include <iostream>
#include <string>

#include "tests/support/stand_in.h"

namespace shardtool::test {

/// The library of fake_nccl.cc, for NcclLibraries; empty where NCCL's headers were not found when
/// this was built.
inline const std::string kFakeNccl = SHARDTOOL_FAKE_NCCL;

/// Whether there is one; says so where there is none.
inline bool has_fake_nccl() {
  if (kFakeNccl.empty()) std::cout << "SKIPPED: no nccl.h when this was built\n";
  return !kFakeNccl.empty();
}

/// Calls a knob of fake_nccl.cc.
template <class Result, class... Args>
Result turn(const char* knob, Args... args) {
  return turn<Result>(kFakeNccl, knob, args...);
}

}  // namespace shardtool::test

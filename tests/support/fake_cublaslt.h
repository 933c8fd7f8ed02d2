#pragma once

#include <iostream>
#include <string>

#include "tests/support/stand_in.h"

namespace shardtool::test {

/// The library of fake_cublaslt.cc; empty where cuBLASLt's header was not found when this was
/// built.
inline const std::string kFakeCublasLt = SHARDTOOL_FAKE_CUBLASLT;

/// Whether there is one; says so where there is none.
inline bool has_fake_cublaslt() {
  if (kFakeCublasLt.empty()) std::cout << "SKIPPED: no cublasLt.h when this was built\n";
  return !kFakeCublasLt.empty();
}

}  // namespace shardtool::test

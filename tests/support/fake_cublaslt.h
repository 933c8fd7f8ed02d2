#pragma once

#include <iostream>
#include <string>

#include "tests/support/stand_in.h"

namespace shardtool::test {

/// Path of the library of fake_cublaslt.cc; empty in a build without cuBLASLt's header.
inline const std::string kFakeCublasLt = SHARDTOOL_FAKE_CUBLASLT;

/// Returns true if the library exists; else prints that the test is skipped.
inline bool has_fake_cublaslt() {
  if (kFakeCublasLt.empty()) std::cout << "SKIPPED: no cublasLt.h when this was built\n";
  return !kFakeCublasLt.empty();
}

}  // namespace shardtool::test

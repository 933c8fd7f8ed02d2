// Entry point of libFuzzer; FUZZ_TARGET is a function of targets.h.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardtool::fuzz::FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}

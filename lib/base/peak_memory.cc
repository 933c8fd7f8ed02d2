#include "lib/base/peak_memory.h"

#include <fstream>
#include <limits>
#include <string>

namespace shardtool {

i64 peak_memory_bytes() {
  std::ifstream status("/proc/self/status");  // proc(5): "VmHWM:     1234 kB"
  for (std::string word; status >> word;) {
    constexpr i64 kKibi = 1024;
    i64 kibi = 0;
    if (word == "VmHWM:" && status >> kibi) return kibi * kKibi;
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

}  // namespace shardtool

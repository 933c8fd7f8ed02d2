// Measures every kernel on the first GPU: the table of kernels/README.md.
#include <cstdio>

#include "kernels/device/device.h"
#include "lib/base/error.h"
#include "tests/kernels/accelerator_table.h"

int main() {
  constexpr shardtool::i64 kBytes = shardtool::i64{256} << 20;
  constexpr int kRounds = 9;
  try {
    const auto gpu = shardtool::kernels::open_accelerator(0);
    shardtool::kernels::accelerator_table(*gpu, kBytes, kRounds, [](const std::string& line) {
      std::fputs(line.c_str(), stdout);
      std::fflush(stdout);
    });
  } catch (const shardtool::Error& error) {
    constexpr int kResourceExit = 6;
    std::printf("SKIPPED: %s", error.what());
    for (const auto& [label, text] : error.notes()) std::printf("; %s", text.c_str());
    std::printf("\n");
    return kResourceExit;
  }
  return 0;
}

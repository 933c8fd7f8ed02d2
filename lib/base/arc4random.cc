// Defines arc4random, which glibc has since 2.36, for the libstdc++.a of a system that has it. A
// program with this function runs with an older glibc, too.
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

extern "C" uint32_t arc4random() noexcept {
  uint32_t bits = 0;
  if (getentropy(&bits, sizeof bits) != 0) abort();
  return bits;
}

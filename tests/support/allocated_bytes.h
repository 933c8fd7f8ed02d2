#pragma once

#include <malloc.h>

#include <iostream>

#include "lib/base/checked.h"

namespace shardtool::test {

/// Returns the bytes that the program has allocated and not freed, by the allocator of the C
/// library.
inline i64 allocated_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<i64>(info.uordblks + info.hblkhd);
}

/// True if allocated_bytes() counts. Under AddressSanitizer it does not; then prints that the test
/// is skipped.
inline bool can_count_allocations() {
#ifdef __SANITIZE_ADDRESS__
  std::cout << "SKIPPED: the sanitizer's allocator does not count bytes in use\n";
  return false;
#else
  return true;
#endif
}

}  // namespace shardtool::test

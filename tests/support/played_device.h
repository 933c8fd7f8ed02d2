#pragma once

#include <cstddef>

#include "lib/base/checked.h"
#include "lib/io/syscalls.h"

namespace shardtool::testing {

/// While it lives, every file lies on a device that takes direct transfers at the addresses that it
/// announces and refuses others (EINVAL), as it does offsets and sizes that are no whole sectors;
/// whatever the file system below has. Other calls go to the table that it found. One at a time.
class PlayedDevice {
 public:
  enum class Announces { kItsAlignment, kNothing };

  /// Takes addresses that are multiples of `memory_alignment`, a power of two.
  explicit PlayedDevice(i64 memory_alignment, Announces announces = Announces::kItsAlignment);

  /// Direct transfers that were refused.
  int refused() const;
  /// Direct reads, and those of them to an address that is not a page's.
  int reads() const;
  int reads_inside_pages() const;

 private:
  io::ScopedSyscalls scope_;
};

}  // namespace shardtool::testing

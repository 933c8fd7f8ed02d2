#pragma once

#include <cstddef>

#include "lib/base/checked.h"
#include "lib/store/local/syscalls.h"

namespace shardtool::testing {

/// During its lifetime, every file is on a simulated device that accepts direct transfers only at
/// addresses with its alignment and refuses others (EINVAL), as well as offsets and sizes that are
/// not whole sectors; independent of the real file system. Other calls use the previous table. Only
/// one instance at a time.
class PlayedDevice {
 public:
  enum class Announces { kItsAlignment, kNothing };

  /// Accepts addresses that are multiples of `memory_alignment`, a power of two.
  explicit PlayedDevice(i64 memory_alignment, Announces announces = Announces::kItsAlignment);

  /// Number of refused direct transfers.
  int refused() const;
  /// Number of direct reads, and of those to an address inside a page.
  int reads() const;
  int reads_inside_pages() const;

 private:
  store::ScopedSyscalls scope_;
};

}  // namespace shardtool::testing

#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/device/accelerator.h"

namespace shardtool::kernels {

/// Ring buffer for chunks on their way to an accelerator: the host fills one slot while earlier
/// ones are copied and computed with. For every chunk:
///
///     begin(bytes)   returns host memory, after the previous chunk of the slot is done
///     send()         queues the copy; returns the device address
///     end()          marks the end of the operations that read the chunk
class UploadRing {
 public:
  UploadRing(Accelerator& accelerator, size_t slots);

  std::byte* begin(size_t bytes);
  const std::byte* send();
  void end();

 private:
  struct Slot {
    std::optional<PairedMemory> memory;
    Accelerator::Ticket done = 0;
  };

  Accelerator& accelerator_;
  std::vector<Slot> slots_;
  size_t current_ = 0;
  size_t bytes_ = 0;  ///< size of the current chunk
};

}  // namespace shardtool::kernels

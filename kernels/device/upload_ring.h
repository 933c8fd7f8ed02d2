#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/device/accelerator.h"

namespace shardtool::kernels {

/// Where a stream of chunks passes on its way to an accelerator: while one slot is filled, those
/// before it are copied and computed with. Of every chunk
///
///     begin(bytes)   room on the host, as soon as the chunk that had it is done with
///     send()         queues the copy; where the chunk will be
///     end()          what was queued since then is all that reads it
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
  size_t bytes_ = 0;  ///< of the current chunk
};

}  // namespace shardtool::kernels

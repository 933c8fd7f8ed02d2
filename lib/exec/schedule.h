#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <variant>

#include "lib/base/checked.h"

namespace shardtool::exec {

/// Several tensors that one thread moves whole, or one tensor without chunks.
struct WholeTensors {
  size_t first = 0;
  size_t count = 0;

  auto operator<=>(const WholeTensors&) const = default;
};

/// One chunk of a tensor whose chunks may be moved by several threads.
struct TensorPart {
  size_t tensor = 0;
  i64 sequence = 0;  ///< position among the tensor's chunks, from 0

  auto operator<=>(const TensorPart&) const = default;
};

using Work = std::variant<WholeTensors, TensorPart>;

/// Tensor sizes that the schedule needs.
class ScheduledTensors {
 public:
  virtual ~ScheduledTensors() = default;
  virtual size_t size() const = 0;
  /// Number of tensors, beginning with `tensor`, that one thread moves whole; 0 if `tensor` is
  /// moved in parts.
  virtual size_t whole_from(size_t tensor) = 0;
  /// Number of chunks of a tensor; above 0 for a tensor that is moved in parts.
  virtual i64 chunks(size_t tensor) = 0;
};

/// Hands out the chunks of a list of tensors and counts the written ones.
///
/// A value without threads, locks and data: `stream` calls it under a mutex, and a test can call it
/// in every order in which threads might.
///
/// S1 every chunk is handed out at most once: tensors in order, the chunks of a tensor in order
/// S2 `written` reports a tensor as complete with the last of all its chunks, and never because no
///    chunk is left to hand out
/// S3 no chunk is handed out after `stop`; chunks handed out before still count
class Schedule {
 public:
  /// Returns the next work, or nullopt when all was handed out or the run was stopped.
  std::optional<Work> next(ScheduledTensors& tensors);

  /// Records that all bytes of a chunk were written. Returns true if its tensor is now complete.
  /// Throws kInternal for a chunk of a tensor that has no chunk outstanding.
  bool written(const TensorPart& part);

  void stop() { is_stopped_ = true; }
  bool is_stopped() const { return is_stopped_; }

  auto operator<=>(const Schedule&) const = default;

 private:
  size_t next_tensor_ = 0;
  TensorPart next_part_;             ///< of the tensor that is being handed out
  i64 left_to_hand_out_ = 0;         ///< chunks of that tensor
  std::map<size_t, i64> unwritten_;  ///< chunks per started, incomplete tensor
  bool is_stopped_ = false;
};

}  // namespace shardtool::exec

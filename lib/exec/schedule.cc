#include "lib/exec/schedule.h"

#include <fmt/format.h>

#include "lib/base/error.h"

namespace shardtool::exec {

std::optional<Work> Schedule::next(ScheduledTensors& tensors) {
  if (is_stopped_) return std::nullopt;
  if (left_to_hand_out_ == 0) {
    if (next_tensor_ == tensors.size()) return std::nullopt;
    if (const size_t count = tensors.whole_from(next_tensor_); count > 0) {
      const WholeTensors whole{next_tensor_, count};
      next_tensor_ += count;
      return whole;
    }
    left_to_hand_out_ = tensors.chunks(next_tensor_);
    unwritten_[next_tensor_] = left_to_hand_out_;
    next_part_ = {next_tensor_++, 0};
  }
  --left_to_hand_out_;
  const TensorPart part = next_part_;
  ++next_part_.sequence;
  return part;
}

bool Schedule::written(const TensorPart& part) {
  const auto tensor = unwritten_.find(part.tensor);
  if (tensor == unwritten_.end()) {
    throw Error(ErrorCode::kInternal,
                fmt::format("chunk {} of tensor {} was written twice", part.sequence, part.tensor));
  }
  if (--tensor->second > 0) return false;
  unwritten_.erase(tensor);
  return true;
}

}  // namespace shardtool::exec

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/base/shape.h"
#include "lib/exec/chunks/computed.h"
#include "lib/index/holder_set.h"

namespace shardtool::exec {

/// File position at which a holder's row-major bytes begin.
struct Slot {
  int file = 0;    ///< index into the run's list of files
  i64 offset = 0;  ///< absolute, bytes
};

/// Orders by `file` and `offset`. A function object, so that sorting inlines it.
inline constexpr auto lies_before = [](const auto& a, const auto& b) {
  return a.file != b.file ? a.file < b.file : a.offset < b.offset;
};

/// Bytes of a holder's part; 0 if they are not a whole number.
inline i64 holder_bytes(const index::HolderSet& holders, int holder, Dtype dtype) {
  return byte_size(dtype, holders.local_shape(holder)).value_or(0);
}

/// One side of a move: the holders of a tensor and their file positions. Tensors with equal layouts
/// share one holder set.
struct MoveSide {
  std::shared_ptr<const index::HolderSet> holders;
  std::vector<Slot> slots;  ///< one per holder
};

/// Move of one tensor from its source holders to its destination holders.
struct TensorMove {
  std::string name;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  MoveSide from;
  MoveSide to;
  /// Digest of the whole tensor from a manifest, if known.
  std::optional<std::uint64_t> expected_digest = {};
  /// Element type at the destinations if it is another one (kernels::cast); `dtype` is the
  /// sources'.
  std::optional<Dtype> cast_to = {};
  /// Not null: the elements are computed, in this `dtype`. `from` is then one holder of the whole
  /// tensor, and its slot is where the first of the stored tensors begins.
  std::shared_ptr<const ComputedTensor> computed = {};

  Dtype result_dtype() const { return cast_to.value_or(dtype); }
};

/// Moves in order of execution: all of them, or those that `order` selects. Its arguments must
/// outlive it.
class MoveList {
 public:
  MoveList(std::span<const TensorMove> moves)  // NOLINT(google-explicit-constructor)
      : moves_(moves), size_(moves.size()) {}
  MoveList(const std::vector<TensorMove>& moves)  // NOLINT(google-explicit-constructor)
      : MoveList(std::span(moves)) {}
  MoveList(std::span<const TensorMove> moves, std::span<const size_t> order)
      : moves_(moves), order_(order.data()), size_(order.size()) {}

  size_t size() const { return size_; }
  const TensorMove& operator[](size_t i) const { return moves_[order_ ? order_[i] : i]; }

 private:
  std::span<const TensorMove> moves_;
  const size_t* order_ = nullptr;  ///< null: the given order
  size_t size_ = 0;
};

}  // namespace shardtool::exec

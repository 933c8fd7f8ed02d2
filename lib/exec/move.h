#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/base/shape.h"
#include "lib/index/holder_set.h"

namespace shardtool::exec {

/// Where a holder's row-major bytes begin.
struct Slot {
  int file = 0;    ///< index into the run's list of files
  i64 offset = 0;  ///< absolute, bytes
};

/// Whether `a` lies before `b`, by their `file` and `offset`. A function object, which sorting
/// inlines.
inline constexpr auto lies_before = [](const auto& a, const auto& b) {
  return a.file != b.file ? a.file < b.file : a.offset < b.offset;
};

/// The bytes of a holder's part; 0 where they are no whole number.
inline i64 holder_bytes(const index::HolderSet& holders, int holder, Dtype dtype) {
  return byte_size(dtype, holders.local_shape(holder)).value_or(0);
}

/// One side of a move: the holders of a tensor and where each lies. Holder sets are shared: tensors
/// with equal layouts have one.
struct Side {
  std::shared_ptr<const index::HolderSet> holders;
  std::vector<Slot> slots;  ///< one per holder
};

/// One tensor from the holders that have it to the holders that want it.
struct TensorMove {
  std::string name;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  Side from;
  Side to;
  /// The digest that the whole tensor must have, where a manifest says so.
  std::optional<std::uint64_t> expected_digest;
};

/// Moves in the order in which they are to be made: all of them, or those that `order` numbers.
/// What it was made of outlives it.
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
  const size_t* order_ = nullptr;  ///< null: as they are
  size_t size_ = 0;
};

}  // namespace shardtool::exec

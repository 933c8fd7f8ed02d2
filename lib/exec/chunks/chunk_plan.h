#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lib/exec/move.h"
#include "lib/index/join.h"
#include "lib/index/strided_copy.h"

namespace shardtool::exec {

/// Memory for one chunk. A chunk is a box of the whole tensor, defined by the chunk axis:
///
/// - A row is one index of the chunk axis (and of all axes before it), with all indices of the axes
///   after it.
/// - A slab is a range of rows in which the holders do not change.
/// - A chunk is some consecutive rows of a slab. In every holder it is one contiguous byte range.
///
///     tensor rows   |== slab 0 ==|==== slab 1 ====|         chunks: <= `rows` rows of one slab
///     source file      [one range]    [one range]
///     destination 0    [one range]                          (row-wise: one destination a slab,
///     destination 1                   [one range]            column-wise: all of them in each)
struct ChunkLimits {
  i64 arena_bytes = 0;  ///< for the bytes of inputs and outputs together
  i64 input_bytes = 0;  ///< for the bytes of inputs alone
};

/// The bytes of a chunk in one source holder.
struct ChunkInput {
  int holder = 0;
  i64 offset = 0;  ///< in the holder's bytes
  i64 bytes = 0;
  i64 row_bytes = 0;
};

/// Destination holder of an output, and the output's offset in the holder's bytes.
struct ChunkTarget {
  int holder = 0;
  i64 offset = 0;
};

/// The bytes of a chunk as one or more destination holders store them.
struct ChunkOutput {
  i64 bytes = 0;             ///< in the sources' element type
  i64 result_bytes = 0;      ///< in the destinations' element type
  bool has_padding = false;  ///< some bytes have no source and are zero
  std::vector<ChunkTarget> targets;
};

/// Copy from one input to one output of a chunk; offsets are relative to the input and output.
struct ChunkCopy {
  int input = 0;
  int output = 0;
  index::StridedCopy copy;
};

/// Position of an input's or output's bytes in the whole tensor: `src` is an offset in the input or
/// output, `dst` the byte offset in the row-major whole tensor.
struct ChunkPlace {
  int range = 0;       ///< index into inputs or outputs
  bool counts = true;  ///< false for an output that repeats elements of an earlier one
  index::StridedCopy place;
};

struct Chunk {
  i64 sequence = 0;  ///< position among the tensor's chunks, from 0
  i64 rows = 0;
  i64 bytes = 0;  ///< of the whole tensor, in this chunk, that some destination needs
  std::vector<ChunkInput> inputs;
  std::vector<ChunkOutput> outputs;
  std::vector<ChunkCopy> copies;
  std::vector<ChunkPlace> input_places;   ///< every needed element once
  std::vector<ChunkPlace> output_places;  ///< every element of every output (see `counts`)
};

/// Throws kCoverage if an element of a destination has no source, kSubByteCut if a cut is inside a
/// byte. The result depends only on the holder sets and the dtype.
void check_move(const TensorMove& move);

/// The chunks of a move, in row-major order of the whole tensor. The plan depends only on the
/// move's holder sets and element sizes, so tensors with equal layouts share one.
class ChunkPlan {
 public:
  /// Requires check_move(move). Throws kLimit if the limits have no room for one element of every
  /// holder.
  ChunkPlan(const TensorMove& move, ChunkLimits limits);

  /// Position of a chunk. chunk() builds its contents, which can run in parallel. A
  /// default-constructed position is before the first chunk.
  struct Position {
    i64 sequence = -1;
    std::vector<i64> outer;  ///< global index on every axis before the chunk axis
    std::vector<const index::HolderJoin::Cell*> cells;  ///< up to and including the chunk axis
    i64 row_begin = 0;                                  ///< relative to the cell of the chunk axis
    i64 rows = 0;
  };
  /// Advances to the next chunk; returns false after the last, and the position is then invalid.
  bool next(Position& position) const;
  /// Builds the contents of a position.
  Chunk chunk(const Position& position) const;

  /// Bytes of the whole tensor that some destination needs, over all chunks.
  i64 bytes() const { return bytes_; }
  /// Number of positions from the first to the last.
  i64 chunks() const;
  /// Returns the bytes that all chunks together write to one destination holder: its rows with at
  /// least one element, including the padding in them. Its other bytes are padding.
  i64 bytes_to(int destination_holder) const;
  /// Calls `visit` for the ranges of a destination holder that no chunk writes (padding), in order.
  void for_each_gap(int destination_holder,
                    const std::function<void(i64 offset, i64 bytes)>& visit) const;
  /// True if the chunks write the holder's bytes from front to back; gaps are padding.
  bool is_sequential(int destination_holder) const;

 private:
  struct Builder;

  void choose_chunk_axis();
  i64 rows_that_fit() const;
  void enter(Position& position) const;
  bool advance(Position& position) const;

  std::shared_ptr<const index::HolderSet> from_;  ///< with a unit axis for scalars
  std::shared_ptr<const index::HolderSet> to_;
  index::HolderJoin join_;
  ChunkLimits limits_;
  Dtype dtype_;
  int element_bits_;
  int result_bits_;   ///< of an element at the destinations
  int scratch_bits_;  ///< for computing an element
  int axis_ = 0;      ///< the chunk axis
  i64 rows_ = 1;
  i64 bytes_ = 0;
};

}  // namespace shardtool::exec

#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lib/exec/move.h"
#include "lib/index/join.h"
#include "lib/index/strided_copy.h"

namespace shardtool::exec {

/// A slab is one index of every axis before the chunk axis times a range of the chunk axis with
/// constant holders; a chunk is some consecutive rows of a slab, where a row is one index of the
/// chunk axis with all inner axes. Inside a chunk every holder's part is one contiguous range of
/// its bytes:
///
///     tensor rows   |== slab 0 ==|==== slab 1 ====|         chunks: <= `rows` rows of one slab
///     source file      [one range]    [one range]
///     destination 0    [one range]                          (row-wise: one destination a slab,
///     destination 1                   [one range]            column-wise: all of them in each)
struct ChunkLimits {
  i64 arena_bytes = 0;  ///< for the bytes of inputs and outputs together
  i64 input_bytes = 0;  ///< for the bytes of inputs alone
};

/// Consecutive rows of a chunk that a source holder has.
struct ChunkInput {
  int holder = 0;
  i64 offset = 0;  ///< in the holder's bytes
  i64 bytes = 0;
  i64 row_bytes = 0;
};

/// Holder that needs a chunk's output, and the offset in its bytes.
struct ChunkTarget {
  int holder = 0;
  i64 offset = 0;
};

/// Consecutive rows as one or more destination holders store them.
struct ChunkOutput {
  i64 bytes = 0;             ///< in the sources' element type
  i64 result_bytes = 0;      ///< in the destinations' element type
  bool has_padding = false;  ///< some bytes have no source and are zero
  std::vector<ChunkTarget> targets;
};

/// Copy of bytes from input `input` to output `output`; offsets are relative to the two ranges.
struct ChunkCopy {
  int input = 0;
  int output = 0;
  index::StridedCopy copy;
};

/// Placement of a range's bytes in the whole tensor: src is relative to the range, dst is the byte
/// offset in the row-major whole tensor.
struct ChunkPlace {
  int range = 0;       ///< index into inputs or outputs
  bool counts = true;  ///< false for an output that repeats elements of an earlier one
  index::StridedCopy place;
};

struct Chunk {
  i64 sequence = 0;  ///< position among the tensor's chunks, from 0
  i64 rows = 0;
  i64 bytes = 0;  ///< of the whole tensor, needed from this chunk by some destination
  std::vector<ChunkInput> inputs;
  std::vector<ChunkOutput> outputs;
  std::vector<ChunkCopy> copies;
  std::vector<ChunkPlace> input_places;   ///< every needed element once
  std::vector<ChunkPlace> output_places;  ///< every element of every output; counting once
};

/// Throws kCoverage when a needed element has no source, kSubByteCut when a cut is inside a byte.
/// The result depends only on the holder sets and the dtype.
void check_move(const TensorMove& move);

/// Streaming plan for the tensors of one layout: it depends only on the move's holder sets and
/// element sizes. Chunks come in row-major order of the whole tensor.
class ChunkPlan {
 public:
  /// Requires check_move(move). Throws kLimit when one element for every holder does not fit.
  ChunkPlan(const TensorMove& move, ChunkLimits limits);

  /// Position of a chunk; its contents are built in a separate step, which can run in parallel. A
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
  /// Bytes that all chunks together bring to one destination holder: every row in which it has an
  /// element, with the padding inside the row. The other bytes of the holder are padding.
  i64 bytes_to(int destination_holder) const;
  /// Calls `visit` with the bytes of a destination holder that no chunk brings, in order: padding.
  void for_each_gap(int destination_holder,
                    const std::function<void(i64 offset, i64 bytes)>& visit) const;
  /// True if the chunks fill the holder's bytes from front to back (gaps are padding).
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

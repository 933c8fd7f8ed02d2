#pragma once

#include "lib/engine/weights/packed_part.h"

namespace shardtool::engine {

/// Computes (code - zero) * scale for every element of consecutive rows, row-major, in the order of
/// the stored codes:
///
///     inputs in rows (GPTQ, AWQ)          inputs in columns
///     codes  [in / word, out] or          codes  [.., out, in / word]
///            [in, out / word]
///     scales [groups, out]                scales [.., out, groups], [out, 1] or one
///     zeros  [groups, out / word]         zeros  [out / word, groups]
///
/// Padded inputs are zero. T is float or double, like the weight's dtype. Throws kDataMismatch for
/// a group that the device lacks and for a recorded shape that is not the weight's, kUnsupported
/// for scales of another form, and the errors of reading.
template <class T>
void unpack_rows(const PackedPart& part, const StoredRows& rows, T* values);

}  // namespace shardtool::engine

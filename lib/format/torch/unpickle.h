#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/format/torch/pickle_tree.h"

namespace shardtool::format::torch {

/// Largest pickle that is read, in bytes.
inline constexpr i64 kMaxPickleBytes = 1'000'000'000;

/// Source of a pickle, for messages.
struct PickleOrigin {
  std::string file;
  std::string record;  ///< such as "data.pkl"; may be empty
  i64 offset = 0;      ///< byte offset of the pickle in the file, 0 if that means nothing
};

/// Reads a pickle of protocol 2 to 5 into a tree. Nothing is imported and nothing is called: a
/// class or function is its name, a call is an object with its arguments. The pickle must end at
/// the end of the text.
///
/// Time is proportional to the pickle. Memory is too, up to a bound that pickles of tensors stay
/// below by far: a free allowance and a few bytes per byte of the pickle.
///
/// Throws kUnsupported for an opcode outside the accepted list, kMalformed for a pickle that breaks
/// the rules of the format, kLimit above the bounds. Each names the opcode and its byte offset.
/// Format: CPython, Lib/pickletools.py.
PickleTree unpickle(std::string text, const PickleOrigin& origin);

/// Length of the pickle at the front of `text`, from one opcode to the next up to STOP, without
/// reading values. Nullopt if the text ends before it; then `scanned` is where to go on with more
/// text. Throws kMalformed for a byte that is no opcode.
std::optional<size_t> pickle_length(std::string_view text, size_t& scanned,
                                    const PickleOrigin& origin);

}  // namespace shardtool::format::torch

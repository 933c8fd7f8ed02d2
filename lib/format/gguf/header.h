#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/shape.h"
#include "lib/format/gguf/block_type.h"
#include "lib/format/problem.h"

namespace shardtool::format::gguf {

/// Bytes of a file. `read` fills the span from an offset; it is called inside the size only.
struct Input {
  std::string path;  ///< for messages
  i64 size = 0;
  std::function<void(i64 offset, std::span<std::byte> into)> read;
};

/// Key with its value. Elements of arrays are not kept.
struct Pair {
  std::string key;
  std::string type;           ///< "u32", "string", "array of string"
  std::string text;           ///< the beginning of a string
  std::optional<i64> number;  ///< an integer that fits, a bool, or the length of an array
};

/// Tensor of a file.
struct TensorInfo {
  std::string name;
  Shape shape;                      ///< outermost axis first, as in safetensors
  const BlockType* type = nullptr;  ///< never null
  i64 offset = 0;                   ///< absolute, bytes
  i64 bytes = 0;
};

/// Header of a GGUF file of version 2 or 3. Format: docs/gguf.md of ggml-org/ggml.
struct Header {
  std::uint32_t version = 0;
  std::vector<Pair> pairs;
  std::vector<TensorInfo> tensors;  ///< in the order of the header; those with known data
  i64 alignment = 32;               ///< of the data and of every tensor, bytes
  i64 data_begin = 0;               ///< 0 if the header could not be read to its end

  const Pair* find(std::string_view key) const;
};

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr i64 kMaxHeaderBytes = i64{1} << 30;
inline constexpr std::uint64_t kMaxTensors = 1 << 20;
inline constexpr std::uint64_t kMaxPairs = 1 << 16;

/// Reads the header and checks it against the file's size: known types, whole blocks in every row,
/// aligned tensors inside the file, no overlap, no gap beyond the alignment. Every defect goes to
/// `report` (kForeignFormat, kHeaderInvalid, kHeaderLength, kTensorTwice, kDtype, kTensorSize,
/// kOverlap, kHole, kTruncated, kTrailingBytes); what was read until then is returned. Memory grows
/// with the bytes that are read, never with a count in the file.
Header read_header(const Input& input, const ProblemSink& report);

}  // namespace shardtool::format::gguf

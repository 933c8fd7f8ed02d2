#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/base/shape.h"
#include "lib/checkpoint/problem.h"
#include "lib/io/file.h"

namespace shardtool::checkpoint::safetensors {

/// The format: 8 bytes little-endian N, N bytes of JSON, then data that the tensors tile exactly
/// (huggingface/safetensors README and safetensors/src/tensor.rs).
inline constexpr i64 kLengthBytes = 8;
inline constexpr i64 kMaxHeaderBytes = 100'000'000;

struct Entry {
  std::string name;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  i64 begin = 0;  ///< relative to the data
  i64 end = 0;
  bool is_valid = true;  ///< false only while problems are reported
};

struct Header {
  std::vector<Entry> entries;  ///< ascending by begin (zero-size tensors first at equal begins)
  std::vector<std::pair<std::string, std::string>> metadata;
  i64 data_begin = 0;  ///< absolute offset of the data: 8 + N
  std::string xxh3;    ///< XXH3-128 of the 8 length bytes and the JSON, lowercase hex
  std::vector<std::string> warnings;  ///< unknown fields
};

/// Reads and validates the header of an open file: afterwards every offset is in range and every
/// size agrees with dtype and shape. Throws kMalformed, kHeaderJson, kTensorInvalid, kUnsupported
/// (pickle, zip, GGUF, LFS pointer, HTML: with a hint), kLimit.
///
/// With a sink that does not throw, an invalid entry and tiling errors are reported and the entry
/// is left out; the remaining ones are inside the file. Only fatal errors (no JSON, another format)
/// are thrown.
Header read_header(const io::File& file, const ProblemSink& report = throw_problem);
/// Same for text and sizes in memory. `path` is for messages.
Header parse_header(std::string_view json, i64 file_size, const std::string& path,
                    const ProblemSink& report = throw_problem);

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// Builds the 8 length bytes and the header of a file, entry by entry, so that entries need not be
/// held.
class HeaderText {
 public:
  explicit HeaderText(const Metadata& metadata);

  /// Appends a tensor whose bytes are [begin, end) of the data.
  void add(std::string_view name, Dtype dtype, const Shape& shape, i64 begin, i64 end);
  /// Returns the text, padded with spaces so that data begins at a multiple of `alignment` plus
  /// `residue`. Throws kLimit above kMaxHeaderBytes.
  std::string finish(i64 alignment, i64 residue) &&;

 private:
  const std::string& kind_of(Dtype dtype, const Shape& shape);

  std::string text_;
  i64 tensors_ = 0;
  Dtype last_dtype_ = Dtype::kBool;
  Shape last_shape_;
  std::string last_kind_;  ///< cached text of these two; adjacent tensors often share them
};

/// Same for a list of entries.
std::string write_header(std::span<const Entry> entries, const Metadata& metadata, i64 alignment);

}  // namespace shardtool::checkpoint::safetensors

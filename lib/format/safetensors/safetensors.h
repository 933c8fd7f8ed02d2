#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/base/shape.h"
#include "lib/format/problem.h"
#include "lib/store/reader.h"

namespace shardtool::format::safetensors {

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
Header read_header(const store::Reader& file, const ProblemSink& report = throw_problem);
/// Same for text and sizes in memory. `path` is for messages.
Header parse_header(std::string_view json, i64 file_size, const std::string& path,
                    const ProblemSink& report = throw_problem);

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// Receives a text in pieces.
using Sink = std::function<void(std::string_view)>;

/// A value of the metadata that is written in pieces, escaped as in a JSON string.
struct LongValue {
  std::string key;
  std::function<void(const Sink& write)> write_to;
};

/// Writes the JSON of a header entry by entry, so that neither entries nor text need be held.
class HeaderJson {
 public:
  /// `last`, if given, follows the other entries of the metadata.
  HeaderJson(Sink write, const Metadata& metadata, const LongValue* last = nullptr);

  /// Appends a tensor whose bytes are [begin, end) of the data. Throws kTensorInvalid for the name
  /// __metadata__, which the format keeps for itself.
  void add(std::string_view name, Dtype dtype, const Shape& shape, i64 begin, i64 end);
  /// Writes the rest and returns the bytes of the whole JSON.
  i64 finish() &&;

 private:
  void begin_value(std::string_view key);
  const std::string& kind_of(Dtype dtype, const Shape& shape);
  void flush_if_long();

  Sink write_;
  std::string text_;  ///< not written yet
  i64 written_ = 0;
  bool has_entry_ = false;  ///< the next entry follows a comma
  Dtype last_dtype_ = Dtype::kBool;
  Shape last_shape_;
  std::string last_kind_;  ///< cached text of these two; adjacent tensors often share them
};

/// Returns the offset of the data of a file: the least multiple of `alignment` plus `residue` that
/// leaves room for the length and the JSON. Throws kLimit if the header, padded to it, exceeds
/// kMaxHeaderBytes.
i64 data_begin(i64 json_bytes, i64 alignment, i64 residue);

/// Returns the 8 length bytes of a file whose data begins at `data_begin`.
std::string length_bytes(i64 data_begin);

/// Returns the length, the JSON and the padding of a header.
std::string write_header(std::span<const Entry> entries, const Metadata& metadata, i64 alignment);

}  // namespace shardtool::format::safetensors

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/json_text.h"
#include "lib/base/text.h"
#include "lib/format/safetensors/safetensors.h"

namespace shardtool::format::safetensors {
namespace {

/// Entry of a header that is no tensor.
constexpr std::string_view kMetadataKey = "__metadata__";

}  // namespace

HeaderJson::HeaderJson(Sink write, const Metadata& metadata, const LongValue* last)
    : write_(std::move(write)), text_("{") {
  if (metadata.empty() && last == nullptr) return;
  append_json_quoted(text_, kMetadataKey);
  text_ += ":{";
  for (const auto& [key, value] : metadata) {
    begin_value(key);
    append_json_quoted(text_, value);
  }
  if (last != nullptr) {
    begin_value(last->key);
    text_ += '"';
    last->write_to([this](std::string_view piece) {
      text_ += piece;
      flush_if_long();
    });
    text_ += '"';
  }
  text_ += '}';
  has_entry_ = true;
}

/// Appends a key of the metadata and its colon.
void HeaderJson::begin_value(std::string_view key) {
  if (text_.back() != '{') text_ += ',';
  append_json_quoted(text_, key);
  text_ += ':';
}

void HeaderJson::add(std::string_view name, Dtype dtype, const Shape& shape, i64 begin, i64 end) {
  if (name == kMetadataKey) {
    throw Error(ErrorCode::kTensorInvalid, "no tensor of a safetensors file can have this name")
        .tensor(std::string(name))
        .help("give it another one with \"store\" in a mapping file, or drop it");
  }
  if (has_entry_) text_ += ',';
  has_entry_ = true;
  append_json_quoted(text_, name);
  text_ += kind_of(dtype, shape);
  append_json_integers(text_, std::array{begin, end});
  text_ += '}';
  flush_if_long();
}

/// Header text between a tensor's name and its offsets.
const std::string& HeaderJson::kind_of(Dtype dtype, const Shape& shape) {
  if (!last_kind_.empty() && dtype == last_dtype_ && shape == last_shape_) return last_kind_;
  last_dtype_ = dtype;
  last_shape_ = shape;
  last_kind_ = ":{\"dtype\":\"";
  last_kind_ += to_string(dtype);
  last_kind_ += "\",\"shape\":";
  append_json_integers(last_kind_, shape);
  last_kind_ += ",\"data_offsets\":";
  return last_kind_;
}

void HeaderJson::flush_if_long() {
  constexpr i64 kLong = 64 << 10;
  if (std::ssize(text_) < kLong) return;
  write_(text_);
  written_ += std::ssize(text_);
  text_.clear();
}

i64 HeaderJson::finish() && {
  text_ += '}';
  write_(text_);
  return written_ + std::ssize(text_);
}

i64 data_begin(i64 json_bytes, i64 alignment, i64 residue) {
  const i64 whole = round_up(std::max<i64>(kLengthBytes + json_bytes - residue, 0), alignment);
  const i64 length = whole + residue - kLengthBytes;
  if (length > kMaxHeaderBytes) {
    throw Error(ErrorCode::kLimit, "the header of an output file is larger than the format allows")
        .note("found", format_bytes(length))
        .note("expected", fmt::format("at most {} bytes", format_count(kMaxHeaderBytes)))
        .help("choose a smaller --max-file-size");
  }
  return whole + residue;
}

std::string length_bytes(i64 data_begin) {
  const i64 length = data_begin - kLengthBytes;
  std::string bytes(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i) bytes[i] = static_cast<char>(length >> (8 * i));
  return bytes;
}

std::string write_header(std::span<const Entry> entries, const Metadata& metadata, i64 alignment) {
  std::string text;
  HeaderJson json([&](std::string_view piece) { text += piece; }, metadata);
  for (const Entry& entry : entries) {
    json.add(entry.name, entry.dtype, entry.shape, entry.begin, entry.end);
  }
  const i64 begin = data_begin(std::move(json).finish(), alignment, 0);
  text.resize(static_cast<size_t>(begin - kLengthBytes), ' ');
  return length_bytes(begin) + text;
}

}  // namespace shardtool::format::safetensors

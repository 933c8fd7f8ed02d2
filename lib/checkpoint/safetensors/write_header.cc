#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/base/json_text.h"
#include "lib/base/text.h"
#include "lib/checkpoint/safetensors/safetensors.h"

namespace shardtool::checkpoint::safetensors {

HeaderText::HeaderText(const Metadata& metadata) : text_(kLengthBytes, '\0') {
  text_ += '{';
  if (metadata.empty()) return;
  text_ += "\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    if (&key != &metadata.front().first) text_ += ',';
    append_json_quoted(text_, key);
    text_ += ':';
    append_json_quoted(text_, value);
  }
  text_ += '}';
}

void HeaderText::add(std::string_view name, Dtype dtype, const Shape& shape, i64 begin, i64 end) {
  if (text_.back() != '{') text_ += ',';
  append_json_quoted(text_, name);
  text_ += kind_of(dtype, shape);
  append_json_integers(text_, std::array{begin, end});
  text_ += '}';
  ++tensors_;
}

/// Header text between a tensor's name and its offsets.
const std::string& HeaderText::kind_of(Dtype dtype, const Shape& shape) {
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

std::string HeaderText::finish(i64 alignment, i64 residue) && {
  text_ += '}';
  const i64 whole = round_up(std::max<i64>(std::ssize(text_) - residue, 0), alignment);
  text_.resize(static_cast<size_t>(whole + residue), ' ');
  const i64 length = static_cast<i64>(text_.size()) - kLengthBytes;
  if (length > kMaxHeaderBytes) {
    throw Error(ErrorCode::kLimit, "the header of an output file is larger than the format allows")
        .note("found", fmt::format("{} tensors, {}", format_count(tensors_), format_bytes(length)))
        .note("expected", fmt::format("at most {} bytes", format_count(kMaxHeaderBytes)))
        .help("choose a smaller --max-file-size");
  }
  for (size_t i = 0; i < kLengthBytes; ++i) text_[i] = static_cast<char>(length >> (8 * i));
  return std::move(text_);
}

std::string write_header(std::span<const Entry> entries, const Metadata& metadata, i64 alignment) {
  HeaderText text(metadata);
  for (const Entry& entry : entries) {
    text.add(entry.name, entry.dtype, entry.shape, entry.begin, entry.end);
  }
  return std::move(text).finish(alignment, 0);
}

}  // namespace shardtool::checkpoint::safetensors

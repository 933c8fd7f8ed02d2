#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "shardtool/base/error.h"
#include "shardtool/base/json_reader.h"
#include "shardtool/base/text.h"
#include "shardtool/checkpoint/safetensors/safetensors.h"

namespace shardtool::checkpoint::safetensors {
namespace {

using Metadata = std::span<const std::pair<std::string, std::string>>;

constexpr i64 kLengthBytes = 8;

void append_metadata(std::string& json, Metadata metadata) {
  json += "\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    if (&key != &metadata.front().first) json += ',';
    json += json_quote(key) + ':' + json_quote(value);
  }
  json += '}';
}

void append_entry(std::string& json, const Entry& entry) {
  json += json_quote(entry.name);
  fmt::format_to(std::back_inserter(json),
                 ":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                 to_string(entry.dtype), fmt::join(entry.shape, ","), entry.begin, entry.end);
}

}  // namespace

std::string write_header(std::span<const Entry> entries, Metadata metadata, i64 alignment,
                         i64 residue) {
  std::string text(kLengthBytes, '\0');
  text += '{';
  if (!metadata.empty()) append_metadata(text, metadata);
  for (const Entry& entry : entries) {
    if (text.back() != '{') text += ',';
    append_entry(text, entry);
  }
  text += '}';
  const i64 whole = round_up(std::max<i64>(std::ssize(text) - residue, 0), alignment);
  text.resize(static_cast<size_t>(whole + residue), ' ');
  const i64 length = static_cast<i64>(text.size()) - kLengthBytes;
  if (length > kMaxHeaderBytes) {
    throw Error(ErrorCode::kLimit, "the header of an output file is larger than the format allows")
        .note("found", fmt::format("{} tensors, {}", format_count(std::ssize(entries)),
                                   format_bytes(length)))
        .note("expected", fmt::format("at most {} bytes", format_count(kMaxHeaderBytes)))
        .help("choose a smaller --max-file-size");
  }
  for (size_t i = 0; i < kLengthBytes; ++i) text[i] = static_cast<char>(length >> (8 * i));
  return text;
}

}  // namespace shardtool::checkpoint::safetensors

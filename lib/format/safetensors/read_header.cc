#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/safetensors/foreign_format.h"
#include "lib/format/safetensors/safetensors.h"

namespace shardtool::format::safetensors {
namespace {

constexpr i64 kHeadBytes = 512;
constexpr i64 kMinHeaderBytes = 2;  // {}

/// Reads the first bytes of the file, at most kHeadBytes.
std::string read_head(const store::Reader& file, i64 file_size) {
  std::string head(static_cast<size_t>(std::min(file_size, kHeadBytes)), '\0');
  store::read_exact(file, std::as_writable_bytes(std::span(head)), 0);
  return head;
}

std::uint64_t little_endian_length(std::string_view head) {
  std::uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= std::uint64_t{static_cast<unsigned char>(head[i])} << (8 * i);
  }
  return length;
}

bool fits(std::uint64_t length, i64 file_size) {
  const i64 most = std::min(kMaxHeaderBytes, file_size - kLengthBytes);
  return length >= kMinHeaderBytes && most > 0 && length <= static_cast<std::uint64_t>(most);
}

/// True if the file begins like safetensors. A valid length can look like another format: 640 bytes
/// of header begin like a pickle. Only other files are checked for foreign formats.
bool begins_like_safetensors(std::string_view head, i64 file_size) {
  constexpr std::string_view kJsonBegins = "{ \t\r\n";
  return head.size() > kLengthBytes && fits(little_endian_length(head), file_size) &&
         kJsonBegins.find(head[kLengthBytes]) != std::string_view::npos;
}

/// Header length. Throws kMalformed if it does not fit the file.
i64 header_bytes(std::string_view head, i64 file_size, const std::string& path) {
  const Place place{path, 0, 0, ""};
  if (head.size() < kLengthBytes) {
    throw Error(ErrorCode::kMalformed, fmt::format("the file has {}, need 8 bytes for the length "
                                                   "of the header",
                                                   format_bytes(file_size)))
        .at(place);
  }
  const std::uint64_t length = little_endian_length(head);
  if (fits(length, file_size)) return static_cast<i64>(length);
  throw Error(ErrorCode::kMalformed, "the length of the header is out of range")
      .at(place)
      .note("byte offset", "0")
      .note("found", fmt::format("a header of {} bytes in a file of {} bytes", length, file_size))
      .note("expected",
            fmt::format("{} to {} bytes inside the file", kMinHeaderBytes, kMaxHeaderBytes))
      .help("the file is truncated or no safetensors file: fetch it again");
}

}  // namespace

Header read_header(const store::Reader& file, const ProblemSink& report) {
  const i64 file_size = store::identity(file).size;
  const std::string head = read_head(file, file_size);
  if (!begins_like_safetensors(head, file_size)) refuse_foreign_format(head, file.path());
  std::string json(static_cast<size_t>(header_bytes(head, file_size, file.path())), '\0');
  store::read_exact(file, std::as_writable_bytes(std::span(json)), kLengthBytes);
  return parse_header(json, file_size, file.path(), report);
}

}  // namespace shardtool::format::safetensors

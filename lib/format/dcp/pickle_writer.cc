#include "lib/format/dcp/pickle_writer.h"

#include <cstdint>

namespace shardtool::format::dcp {
namespace {

constexpr char kProtocol2[] = {'\x80', '\x02'};

}  // namespace

PickleWriter::PickleWriter(std::string& out) : out_(out) {
  out_.append(kProtocol2, sizeof kProtocol2);
}

void PickleWriter::little_endian(i64 value, int bytes) {
  const auto bits = static_cast<std::uint64_t>(value);
  for (int b = 0; b < bytes; ++b) out_ += static_cast<char>(bits >> (8 * b) & 0xff);
}

void PickleWriter::integer(i64 value) {
  if (value >= 0 && value <= UINT8_MAX) {
    out_ += 'K';
    little_endian(value, 1);
  } else if (value >= 0 && value <= UINT16_MAX) {
    out_ += 'M';
    little_endian(value, 2);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    out_ += 'J';
    little_endian(value, 4);
  } else {
    out_ += "\x8a\x08";  // LONG1 of 8 bytes
    little_endian(value, 8);
  }
}

void PickleWriter::text(std::string_view value) {
  out_ += 'X';
  little_endian(std::ssize(value), 4);
  out_ += value;
}

bool PickleWriter::recall(const std::string& key) {
  const auto [known, is_new] = memo_.try_emplace(key, std::ssize(memo_));
  if (is_new) return false;
  const bool is_short = known->second <= UINT8_MAX;
  out_ += is_short ? 'h' : 'j';
  little_endian(known->second, is_short ? 1 : 4);
  return true;
}

void PickleWriter::remember() {
  const i64 number = std::ssize(memo_) - 1;
  const bool is_short = number <= UINT8_MAX;
  out_ += is_short ? 'q' : 'r';
  little_endian(number, is_short ? 1 : 4);
}

void PickleWriter::shared_text(std::string_view value) {
  if (recall("t" + std::string(value))) return;
  text(value);
  remember();
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  std::string both = std::string(module) + '\n' + std::string(name) + '\n';
  if (recall("c" + both)) return;
  out_ += 'c';
  out_ += both;
  remember();
}

void PickleWriter::object(std::string_view module, std::string_view name) {
  global(module, name);
  empty_tuple();
  out_ += '\x81';  // NEWOBJ
}

void PickleWriter::integers(std::span<const i64> values) {
  if (values.empty()) return empty_tuple();
  mark();
  for (const i64 value : values) integer(value);
  tuple();
}

}  // namespace shardtool::format::dcp

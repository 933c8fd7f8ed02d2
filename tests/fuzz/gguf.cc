// The first bytes of a GGUF file. The last byte is the number of zeros that follow them.
#include <algorithm>
#include <cstring>

#include "lib/format/gguf/header.h"
#include "tests/fuzz/property.h"
#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {

void gguf(std::string_view input) {
  if (input.empty()) return;
  const std::string_view bytes = input.substr(0, input.size() - 1);
  const i64 size = std::ssize(bytes) + static_cast<unsigned char>(input.back());
  const auto read = [&](i64 offset, std::span<std::byte> into) {
    holds(offset >= 0 && std::ssize(into) <= size - offset, "bytes outside the file were read");
    std::fill(into.begin(), into.end(), std::byte{});
    const i64 there = std::clamp<i64>(std::ssize(bytes) - offset, 0, std::ssize(into));
    if (there > 0) std::memcpy(into.data(), &bytes[static_cast<size_t>(offset)], there);
  };
  int problems = 0;
  const auto header =
      format::gguf::read_header({"f", size, read}, [&](const format::Problem&) { ++problems; });
  i64 last = header.data_begin;
  for (const auto& tensor : header.tensors) {
    holds(tensor.bytes >= 0 && tensor.offset >= header.data_begin, "a tensor begins in the header");
    holds(tensor.bytes <= size - tensor.offset, "a tensor leaves the file");
    last = std::max(last, tensor.offset + tensor.bytes);
  }
  const bool is_tiled = size - last < 2 * header.alignment;
  holds(problems > 0 || is_tiled, "bytes beside the tensors were accepted");
}

}  // namespace shardtool::fuzz

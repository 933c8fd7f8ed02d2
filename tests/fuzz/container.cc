// A whole file under the name of a safetensors file.
#include "lib/format/safetensors/safetensors.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {
namespace {

namespace st = format::safetensors;
}  // namespace

void container(std::string_view input) {
  const store::File file = memory_file(input);
  const auto read = accepted([&] { return st::read_header(file); });
  if (!read) return;
  const auto begin = static_cast<size_t>(read->data_begin);
  holds(begin >= 8 && begin <= input.size(), "the data begins outside the file");
  const auto parsed =
      st::parse_header(input.substr(8, begin - 8), static_cast<i64>(input.size()), "f");
  holds(parsed.entries.size() == read->entries.size(), "file and text have other tensors");
  holds(parsed.xxh3 == read->xxh3, "file and text have other hashes");
  for (const st::Entry& entry : read->entries) {
    holds(read->data_begin + entry.end <= static_cast<i64>(input.size()),
          "a tensor ends outside the file");
  }
}

}  // namespace shardtool::fuzz

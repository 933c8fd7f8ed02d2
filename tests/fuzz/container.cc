// A whole file under the name of a safetensors file.
#include <sys/mman.h>

#include "lib/format/safetensors/safetensors.h"
#include "tests/fuzz/property.h"
#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {
namespace {

namespace st = format::safetensors;

/// A file in memory with these bytes.
store::File file_of(std::string_view bytes) {
  store::File file(memfd_create("fuzz", MFD_CLOEXEC), "f");
  holds(file.is_open(), "no file in memory");
  store::write_exact(file, std::as_bytes(std::span(bytes)), 0);
  return file;
}

}  // namespace

void container(std::string_view input) {
  const store::File file = file_of(input);
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

// A zip archive of stored records.
#include "lib/format/torch/zip_directory.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {

void zip_archive(std::string_view input) {
  const store::File file = memory_file(input);
  const auto size = static_cast<i64>(input.size());
  const auto directory = accepted([&] { return format::torch::read_zip_directory(file, 0, size); });
  if (!directory) return;
  i64 end = 0;
  for (const auto& record : directory->records) {
    holds(record.offset >= end, "records overlap");
    holds(record.bytes >= 0, "a record has a negative size");
    end = record.offset + record.bytes;
  }
  holds(end <= size, "a record ends outside the archive");
}

}  // namespace shardtool::fuzz

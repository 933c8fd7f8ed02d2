// A whole file under the name of a torch file: the zip form or the legacy form.
#include "lib/format/torch/state_dict.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {

void torch_file(std::string_view input) {
  const store::File file = memory_file(input);
  const auto archive = accepted([&] { return format::torch::read_archive(file); });
  if (!archive) return;
  const auto size = static_cast<i64>(input.size());
  holds(archive->header_bytes <= size, "more was read than the file has");
  for (const auto& [key, place] : archive->storages) {
    holds(place.offset >= 0 && place.bytes >= 0 && place.offset + place.bytes <= size,
          "a storage is outside the file");
  }
  const auto content = accepted([&] { return format::torch::state_dict(*archive, "f"); });
  if (!content) return;
  for (const auto& tensor : content->tensors) {
    holds(tensor.slot.offset >= 0 && tensor.slot.offset + tensor.slot.bytes <= size,
          "a tensor is outside the file");
  }
}

}  // namespace shardtool::fuzz

#include "lib/check/data/logical_values.h"

#include "lib/exec/files/data_file.h"
#include "lib/exec/shifted.h"

namespace shardtool::check {

std::vector<i64> logical_values(const DataTensor& tensor, std::span<const index::ValueShift> shifts,
                                std::span<const DataFile> files, const exec::KeptRanges& kept) {
  const auto bytes_of = [&](int holder, i64 bytes) {
    const exec::Slot& slot = tensor.side.slots[static_cast<size_t>(holder)];
    if (const auto* const known = kept.find(slot, bytes)) return *known;
    exec::KeptRanges::Bytes read(static_cast<size_t>(bytes));
    const exec::SourceFile file(files[static_cast<size_t>(slot.file)].file);
    if (bytes > 0) file.read_exact(read, slot.offset);
    return read;
  };
  const TensorSpec& spec = tensor.spec;
  return exec::load_shifted(spec.name, spec.dtype, spec.shape, *tensor.side.holders, shifts,
                            bytes_of);
}

}  // namespace shardtool::check

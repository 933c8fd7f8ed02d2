#include "lib/format/dcp/files.h"

#include <fmt/format.h>

#include "kernels/xxh3/xxh3.h"
#include "lib/format/dcp/blob.h"

namespace shardtool::format::dcp {
namespace {

/// Shorter data need not begin on a page.
constexpr i64 kLongBytes = 64 << 10;
constexpr i64 kShortAlignment = 64;  // PyTorch's
constexpr i64 kResidueUnit = 8;

/// Place of a blob's data modulo the alignment.
struct Alignment {
  i64 alignment = kShortAlignment;
  i64 residue = 0;
};

/// Data of many pages keeps the page offset of its source, so that file systems can share pages.
Alignment wanted_alignment(i64 bytes, i64 origin) {
  if (bytes < kLongBytes) return {};
  const i64 residue = origin == kNoOrigin ? 0 : origin % kDataAlignment;
  return {kDataAlignment, residue % kResidueUnit == 0 ? residue : 0};
}

BlobFrame frame_at(const TensorTable::Tensor& tensor, i64 begin, const Alignment& wanted) {
  return blob_frame(tensor.name, tensor.dtype, tensor.shape, begin, wanted.alignment,
                    wanted.residue);
}

/// Plans a file of these tensors.
PlannedFile plan_file(std::string name, std::vector<size_t> members, const FileRequest& request) {
  PlannedFile file{std::move(name), {}, std::move(members), 0, 0, {}};
  kernels::Xxh3 hash;
  for (const size_t t : file.members) {
    const TensorTable::Tensor tensor = request.tensors.at(t);
    const i64 bytes = data_bytes(tensor);
    const i64 origin = request.origins.empty() ? kNoOrigin : request.origins[t];
    const BlobFrame frame = frame_at(tensor, file.size, wanted_alignment(bytes, origin));
    const i64 data = file.size + std::ssize(frame.head);
    file.frames.push_back({file.size, data, data + bytes + std::ssize(frame.tail)});
    file.size = file.frames.back().end;
    hash.update(std::as_bytes(std::span(frame.head)));
    hash.update(std::as_bytes(std::span(frame.tail)));
  }
  file.data_begin = file.frames.empty() ? 0 : file.frames.front().data;
  file.header_xxh3 = hash.hex();
  return file;
}

}  // namespace

FilePlan plan_files(const FileRequest& request) {
  FilePlan plan;
  plan.places.resize(request.tensors.size);
  auto files = deal_out(request.tensors, request.max_file_size, SameName::kInOneFile);
  for (size_t f = 0; f < files.size(); ++f) {
    const PlannedFile& file = plan.files.emplace_back(
        plan_file(request.name_of(f, files.size()), std::move(files[f]), request));
    for (size_t m = 0; m < file.members.size(); ++m) {
      plan.places[file.members[m]] = {static_cast<int>(f), file.frames[m].data};
    }
  }
  return plan;
}

void frame_file(const PlannedFile& file, const TensorTable& tensors, const FrameSink& write) {
  for (size_t m = 0; m < file.members.size(); ++m) {
    const FramedData& place = file.frames[m];
    const TensorTable::Tensor tensor = tensors.at(file.members[m]);
    const bool is_long = data_bytes(tensor) >= kLongBytes;
    const i64 alignment = is_long ? kDataAlignment : kShortAlignment;
    const BlobFrame frame = frame_at(tensor, place.begin, {alignment, place.data % alignment});
    write(place.begin, frame.head);
    write(place.end - std::ssize(frame.tail), frame.tail);
  }
}

std::string metadata_name(bool, size_t) {
  return std::string(kMetadataName);
}

}  // namespace shardtool::format::dcp

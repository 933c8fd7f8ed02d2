#include "lib/format/dcp/blob.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/dcp/pickle_writer.h"
#include "lib/format/torch/torch_dtype.h"

namespace shardtool::format::dcp {
namespace {

/// CRC-32 of zip files (ITU-T V.42), for the short records.
std::uint32_t crc32_of(std::string_view bytes) {
  constexpr std::uint32_t kPolynomial = 0xedb88320;
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kPolynomial : 0);
  }
  return ~crc;
}

/// Appends the lowest bytes of a number, the lowest first; beyond eight they are 0.
void append_number(std::string& out, i64 value, int bytes) {
  auto bits = static_cast<std::uint64_t>(value);
  for (int b = 0; b < bytes; ++b, bits >>= 8) out += static_cast<char>(bits & 0xff);
}

/// Sizes of a zip that need 64 bits are this in the 32-bit fields (PKWARE, APPNOTE.TXT 4.5.3).
constexpr i64 kSeeZip64 = 0xffffffff;
constexpr i64 kPlainVersion = 20;
constexpr i64 kZip64Version = 45;

struct Record {
  std::string name;
  i64 bytes = 0;
  std::uint32_t crc = 0;
  i64 offset = 0;  ///< of its local header, from the begin of the blob

  bool is_long() const { return bytes >= kSeeZip64; }
};

/// Extra field with the true size, twice: as stored and as it was before compression.
std::string zip64_sizes(const Record& record) {
  std::string extra;
  if (!record.is_long()) return extra;
  append_number(extra, 1, 2);
  append_number(extra, 16, 2);
  append_number(extra, record.bytes, 8);
  append_number(extra, record.bytes, 8);
  return extra;
}

/// Fields that the local header and the central directory share, up to the length of the extra.
void append_common(std::string& out, const Record& record, i64 extra_bytes) {
  const i64 size = record.is_long() ? kSeeZip64 : record.bytes;
  append_number(out, record.is_long() ? kZip64Version : kPlainVersion, 2);
  append_number(out, 0, 8);  // flags, method 0: stored, time, date
  append_number(out, record.crc, 4);
  append_number(out, size, 4);
  append_number(out, size, 4);
  append_number(out, std::ssize(record.name), 2);
  append_number(out, extra_bytes, 2);
}

void append_local_header(std::string& out, const Record& record, const std::string& extra) {
  out += "PK\x03\x04";
  append_common(out, record, std::ssize(extra));
  out += record.name;
  out += extra;
}

void append_directory_entry(std::string& out, const Record& record) {
  const std::string extra = zip64_sizes(record);
  out += "PK\x01\x02";
  append_number(out, record.is_long() ? kZip64Version : kPlainVersion, 2);
  append_common(out, record, std::ssize(extra));
  append_number(out, 0, 10);  // no comment, disk 0, attributes
  append_number(out, record.offset, 4);
  out += record.name;
  out += extra;
}

/// Record and locator for directories that begin beyond 4 GiB.
void append_zip64_end(std::string& out, i64 entries, i64 directory, i64 directory_bytes) {
  const i64 end = directory + directory_bytes;
  out += "PK\x06\x06";
  append_number(out, 44, 8);  // bytes that follow
  append_number(out, kZip64Version, 2);
  append_number(out, kZip64Version, 2);
  append_number(out, 0, 8);  // disks
  append_number(out, entries, 8);
  append_number(out, entries, 8);
  append_number(out, directory_bytes, 8);
  append_number(out, directory, 8);
  out += "PK\x06\x07";
  append_number(out, 0, 4);
  append_number(out, end, 8);
  append_number(out, 1, 4);
}

std::string directory_text(std::span<const Record> records, i64 begin) {
  std::string out;
  for (const Record& record : records) append_directory_entry(out, record);
  const i64 bytes = std::ssize(out);
  const bool is_long = begin >= kSeeZip64;
  if (is_long) append_zip64_end(out, std::ssize(records), begin, bytes);
  out += "PK\x05\x06";
  append_number(out, 0, 4);
  append_number(out, std::ssize(records), 2);
  append_number(out, std::ssize(records), 2);
  append_number(out, bytes, 4);
  append_number(out, is_long ? kSeeZip64 : begin, 4);
  append_number(out, 0, 2);
  return out;
}

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<i64>(shape[d], 1);
  return strides;
}

Error unsupported_dtype(std::string_view name, Dtype dtype) {
  return Error(ErrorCode::kUnsupported, "PyTorch has no tensors of this dtype")
      .tensor(quote_for_message(std::string(name)))
      .note("found", std::string(to_string(dtype)))
      .help("write the layout plain or dcp-hf, whose files are safetensors");
}

/// Pickle of one tensor that refers to the record data/0.
std::string tensor_pickle(const torch::TorchNames& names, Dtype dtype, const Shape& shape) {
  const bool is_untyped = names.storage.empty();
  const i64 elements = element_count(shape).value_or(0);
  std::string out;
  PickleWriter pickle(out);
  pickle.global("torch._utils", is_untyped ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2");
  pickle.mark();
  pickle.mark();
  pickle.text("storage");
  if (is_untyped) {
    pickle.global("torch.storage", "UntypedStorage");
  } else {
    pickle.global("torch", names.storage);
  }
  pickle.text("0");
  pickle.text("cpu");
  pickle.integer(is_untyped ? byte_size(dtype, shape).value_or(0) : elements);
  pickle.tuple();
  pickle.persistent_id();
  pickle.integer(0);  // first element
  pickle.integers(shape);
  pickle.integers(row_major_strides(shape));
  pickle.boolean(false);  // requires_grad
  pickle.global("collections", "OrderedDict");
  pickle.empty_tuple();
  pickle.call();
  if (is_untyped) pickle.global("torch", names.name);
  pickle.tuple();
  pickle.call();
  pickle.stop();
  return out;
}

/// Padding that brings the data to its place, as an extra field: "FB", as PyTorch names it.
std::string padding_extra(i64 data_at, i64 alignment, i64 residue) {
  constexpr i64 kFieldBytes = 4;
  const i64 missing = (residue - data_at - kFieldBytes) % alignment;
  const i64 padding = missing < 0 ? missing + alignment : missing;
  std::string extra = "FB";
  append_number(extra, padding, 2);
  return extra + std::string(static_cast<size_t>(padding), 'Z');
}

}  // namespace

BlobFrame blob_frame(std::string_view name, Dtype dtype, const Shape& shape, i64 begin,
                     i64 alignment, i64 residue) {
  constexpr i64 kLocalHeaderBytes = 30;
  const torch::TorchNames* names = torch::torch_names(dtype);
  if (names == nullptr) throw unsupported_dtype(name, dtype);
  std::vector<Record> records;
  BlobFrame frame;
  const auto add = [&](std::string record, const std::string& content) {
    records.push_back(
        {std::move(record), std::ssize(content), crc32_of(content), std::ssize(frame.head)});
    append_local_header(frame.head, records.back(), "");
    frame.head += content;
  };
  add("archive/data.pkl", tensor_pickle(*names, dtype, shape));
  add("archive/byteorder", "little");
  add("archive/version", "3\n");
  records.push_back(
      {"archive/data/0", byte_size(dtype, shape).value_or(0), 0, std::ssize(frame.head)});
  std::string extra = zip64_sizes(records.back());
  const i64 data_at = begin + std::ssize(frame.head) + kLocalHeaderBytes +
                      std::ssize(records.back().name) + std::ssize(extra);
  extra += padding_extra(data_at, alignment, residue);
  append_local_header(frame.head, records.back(), extra);
  frame.tail = directory_text(records, std::ssize(frame.head) + records.back().bytes);
  return frame;
}

}  // namespace shardtool::format::dcp

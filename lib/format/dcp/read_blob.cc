#include "lib/format/dcp/read_blob.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/torch/torch_dtype.h"
#include "lib/format/torch/unpickle.h"
#include "lib/format/torch/zip_directory.h"

namespace shardtool::format::dcp {
namespace {

using torch::PickleValue;
using torch::ValueKind;
using torch::ZipRecord;

/// A pickle of one tensor has a few hundred bytes.
constexpr i64 kMaxPickleBytes = 1 << 16;

class Blob {
 public:
  Blob(const store::Reader& file, const std::string& name, Dtype dtype, const Chunk& chunk)
      : file_(file), name_(name), dtype_(dtype), chunk_(chunk) {}

  /// Returns the record of the data.
  ZipRecord find() const {
    const torch::ZipDirectory directory = read_directory();
    const ZipRecord pickle = record(directory, "/data.pkl");
    if (pickle.bytes > kMaxPickleBytes) throw malformed("the pickle of a chunk is too long");
    std::string text(static_cast<size_t>(pickle.bytes), '\0');
    store::read_exact(file_, std::as_writable_bytes(std::span(text)), pickle.offset);
    const torch::PickleTree tree =
        torch::unpickle(std::move(text), {file_.path(), pickle.name, pickle.offset});
    const std::string key = check_tensor(tree.root());
    if (const auto order = find_record(directory, "/byteorder")) check_order(*order);
    ZipRecord data = record(directory, "/data/" + key);
    const auto bytes = byte_size(dtype_, chunk_.shape);
    if (data.bytes == bytes) return data;
    throw malformed("the data of a chunk has another size than its shape")
        .note("found", fmt::format("{} bytes", data.bytes))
        .note("expected", fmt::format("{} bytes", bytes.value_or(0)));
  }

 private:
  Error malformed(const std::string& message) const {
    return Error(ErrorCode::kMalformed, message)
        .at({file_.path(), 0, 0, ""})
        .tensor(quote_for_message(name_))
        .note("blob", fmt::format("{} bytes at {}", chunk_.length, chunk_.offset));
  }

  torch::ZipDirectory read_directory() const {
    try {
      return torch::read_zip_directory(file_, chunk_.offset, chunk_.length);
    } catch (const Error&) {
      if (is_safetensors()) {
        throw Error(ErrorCode::kUnsupported,
                    "the chunks are stored as safetensors, not by torch.save")
            .at({file_.path(), 0, 0, ""})
            .tensor(quote_for_message(name_))
            .help("save without serialization_format=SerializationFormat.SAFETENSORS");
      }
      throw;
    }
  }

  /// True if the file begins with the length of a header in its range, and a brace. torch counts
  /// the bytes of such chunks without the header.
  bool is_safetensors() const {
    constexpr i64 kLengthBytes = 8;
    std::array<std::uint8_t, kLengthBytes + 1> front{};
    const i64 size = store::identity(file_).size;
    if (size < std::ssize(front)) return false;
    store::read_exact(file_, std::as_writable_bytes(std::span(front)), 0);
    std::uint64_t header = 0;
    for (size_t i = kLengthBytes; i-- > 0;) header = header << 8U | front[i];
    return header <= static_cast<std::uint64_t>(size - kLengthBytes) && front.back() == '{';
  }

  static std::optional<ZipRecord> find_record(const torch::ZipDirectory& directory,
                                              std::string_view end) {
    const auto found =
        std::find_if(directory.records.begin(), directory.records.end(), [&](const ZipRecord& one) {
          // All records are in one folder.
          return one.name.ends_with(end) && one.name.find('/') == one.name.size() - end.size();
        });
    if (found == directory.records.end()) return std::nullopt;
    return *found;
  }
  ZipRecord record(const torch::ZipDirectory& directory, const std::string& end) const {
    if (auto found = find_record(directory, end)) return *std::move(found);
    throw malformed("a chunk is not a tensor of torch.save")
        .note("missing", quote_for_message(end.substr(1)));
  }

  void check_order(const ZipRecord& order) const {
    std::string text(static_cast<size_t>(std::min<i64>(order.bytes, 16)), '\0');
    store::read_exact(file_, std::as_writable_bytes(std::span(text)), order.offset);
    if (text == "little") return;
    throw Error(ErrorCode::kUnsupported, "the data is not little-endian")
        .at({file_.path(), 0, 0, ""})
        .tensor(quote_for_message(name_));
  }

  /// Checks that the pickle is the tensor that `.metadata` has. Returns the key of its storage.
  std::string check_tensor(const PickleValue& root) const {
    const bool is_v3 = is_call(root, "torch._utils", "_rebuild_tensor_v3");
    const bool is_v2 = is_call(root, "torch._utils", "_rebuild_tensor_v2");
    const size_t least = is_v3 ? 7 : 4;
    if ((!is_v2 && !is_v3) || root.arguments().size() < least) {
      throw malformed("a chunk is not a plain tensor");
    }
    const PickleValue arguments = root.arguments();
    const PickleValue storage =
        arguments[0].is(ValueKind::kPersistent) ? arguments[0].persistent_id() : arguments[0];
    const bool has_key = storage.is(ValueKind::kTuple) && storage.size() >= 5 &&
                         storage[0].is_text("storage") && storage[2].is(ValueKind::kText) &&
                         storage[1].is(ValueKind::kGlobal);
    if (!has_key) throw malformed("a chunk has no storage");
    const PickleValue dtype = is_v3 ? arguments[6] : storage[1];
    const torch::TorchNames* names = torch::torch_names(dtype_);
    const std::string_view expected = is_v3 ? names->name : names->storage;
    if (!dtype.is_global("torch", expected)) throw malformed("a chunk has another dtype");
    check_dense(arguments);
    return std::string(storage[2].text());
  }

  static bool is_call(const PickleValue& value, std::string_view module, std::string_view name) {
    return value.is(ValueKind::kObject) && value.callable().is_global(module, name) &&
           value.arguments().is(ValueKind::kTuple);
  }

  /// Checks first element, shape and strides.
  void check_dense(const PickleValue& arguments) const {
    const Shape& shape = chunk_.shape;
    if (!is_numbers(arguments[2], shape)) throw malformed("a chunk has another shape");
    const bool is_at_begin = arguments[1].is(ValueKind::kInteger) && arguments[1].integer() == 0;
    if (is_at_begin && has_row_major_strides(arguments[3])) return;
    throw Error(ErrorCode::kUnsupported, "the elements of a chunk are not in row-major order")
        .at({file_.path(), 0, 0, ""})
        .tensor(quote_for_message(name_))
        .help("save contiguous tensors: tensor.contiguous()");
  }

  static bool is_numbers(const PickleValue& value, const Shape& expected) {
    if (!value.is(ValueKind::kTuple) || value.size() != expected.size()) return false;
    for (size_t i = 0; i < expected.size(); ++i) {
      if (!value[i].is(ValueKind::kInteger) || value[i].integer() != expected[i]) return false;
    }
    return true;
  }

  /// An axis of one index may have any stride.
  bool has_row_major_strides(const PickleValue& strides) const {
    const Shape& shape = chunk_.shape;
    if (!strides.is(ValueKind::kTuple) || strides.size() != shape.size()) return false;
    if (element_count(shape) == 0) return true;
    i64 expected = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
      const PickleValue stride = strides[axis];
      const bool is_right = stride.is(ValueKind::kInteger) && stride.integer() == expected;
      if (!is_right && shape[axis] != 1) return false;
      expected *= shape[axis];
    }
    return true;
  }

  const store::Reader& file_;
  const std::string& name_;
  Dtype dtype_;
  const Chunk& chunk_;
};

void hash_range(const store::Reader& file, i64 begin, i64 end, kernels::Xxh3& hash) {
  std::vector<std::byte> buffer;
  constexpr i64 kMost = 1 << 20;
  for (i64 at = begin; at < end;) {
    buffer.resize(static_cast<size_t>(std::min(kMost, end - at)));
    store::read_exact(file, buffer, at);
    hash.update(buffer);
    at += std::ssize(buffer);
  }
}

}  // namespace

i64 read_blob(const store::Reader& file, const std::string& name, Dtype dtype, const Chunk& chunk,
              kernels::Xxh3& frame) {
  const ZipRecord data = Blob(file, name, dtype, chunk).find();
  hash_range(file, chunk.offset, data.offset, frame);
  hash_range(file, data.offset + data.bytes, chunk.offset + chunk.length, frame);
  return data.offset;
}

}  // namespace shardtool::format::dcp

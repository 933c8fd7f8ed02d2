#include "lib/format/gguf/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "lib/base/checked.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/gguf/cursor.h"
#include "lib/format/gguf/pairs.h"
#include "lib/format/gguf/tiling.h"

namespace shardtool::format::gguf {
namespace {

constexpr std::uint64_t kLongestName = 64;
constexpr std::uint32_t kMostAxes = 4;
constexpr i64 kLeastPairBytes = 8 + 4 + 1;
constexpr i64 kLeastTensorBytes = 8 + 4 + 4 + 8;
constexpr i64 kMaxAlignment = 1 << 20;

class Reading {
 public:
  Reading(const Input& input, const ProblemSink& report)
      : input_(input), report_(report), cursor_(input) {}

  Header run() && {
    try {
      read_begin();
      read_pairs();
      read_tensors();
      header_.data_begin = round_up(cursor_.offset(), header_.alignment);
    } catch (const Error& error) {
      report_({kind_of(error), error, ""});
      header_.tensors.clear();  // nobody knows where their data are
    }
    if (header_.data_begin > 0) place_tensors(header_, input_, report_);
    return std::move(header_);
  }

 private:
  ProblemKind kind_of(const Error& error) const {
    if (error.code() == ErrorCode::kUnsupported) return ProblemKind::kForeignFormat;
    if (error.code() == ErrorCode::kLimit) return ProblemKind::kHeaderLength;
    return cursor_.is_at_end() ? ProblemKind::kTruncated : ProblemKind::kHeaderInvalid;
  }

  Error unsupported(const std::string& message, const std::string& help) const {
    return Error(ErrorCode::kUnsupported, message).at({input_.path, 0, 0, ""}).help(help);
  }

  void read_begin() {
    std::string magic(kMagic.size(), '\0');
    for (char& c : magic) c = cursor_.value<char>();
    if (magic != kMagic) throw unsupported("the file does not begin with GGUF", "check its name");
    header_.version = cursor_.value<std::uint32_t>();
    if (header_.version == 2 || header_.version == 3) return check_counts();
    const std::uint32_t swapped = __builtin_bswap32(header_.version);
    if (swapped >= 1 && swapped <= 3) {
      throw unsupported(fmt::format("a big-endian GGUF file of version {}", swapped),
                        "convert it to little-endian with gguf_convert_endian.py of llama.cpp");
    }
    throw unsupported(fmt::format("GGUF version {} is not supported", header_.version),
                      "versions 2 and 3 are; make the file again with a current llama.cpp");
  }

  void check_counts() {
    tensors_ = cursor_.value<std::uint64_t>();
    pairs_ = cursor_.value<std::uint64_t>();
    check_count("tensors", tensors_, kMaxTensors, kLeastTensorBytes);
    check_count("pairs", pairs_, kMaxPairs, kLeastPairBytes);
  }

  void check_count(const char* what, std::uint64_t count, std::uint64_t most, i64 bytes) const {
    if (count > static_cast<std::uint64_t>(cursor_.left() / bytes)) cursor_.fail_at_end();
    if (count <= most) return;
    throw Error(ErrorCode::kLimit, fmt::format("{} {} are more than {}", count, what, most))
        .at({input_.path, 0, 0, ""});
  }

  void read_pairs() {
    std::set<std::string> keys;
    for (std::uint64_t i = 0; i < pairs_; ++i) {
      Pair pair = read_pair(cursor_);
      if (!keys.insert(pair.key).second) {
        cursor_.fail(fmt::format("the key '{}' occurs twice", quote_for_message(pair.key, 80)));
      }
      header_.pairs.push_back(std::move(pair));
    }
    const Pair* alignment = header_.find("general.alignment");
    if (alignment == nullptr) return;
    const i64 value = alignment->type == "u32" ? *alignment->number : 0;
    const bool is_valid = value >= 8 && value <= kMaxAlignment &&
                          std::has_single_bit(static_cast<std::uint64_t>(value));
    if (!is_valid) cursor_.fail("general.alignment is not a power of two of 8 or more in a u32");
    header_.alignment = value;
  }

  void read_tensors() {
    std::set<std::string> names;
    for (std::uint64_t i = 0; i < tensors_; ++i) {
      TensorInfo tensor;
      tensor.name = cursor_.text(kLongestName, kLongestName);
      read_shape(tensor);
      const auto type = cursor_.value<std::uint32_t>();
      const auto offset = cursor_.value<std::uint64_t>();
      if (!names.insert(tensor.name).second) {
        report(ProblemKind::kTensorTwice, tensor, "the tensor occurs twice");
        continue;
      }
      tensor.type = find_block_type(type);
      if (tensor.type == nullptr) {
        report(ProblemKind::kDtype, tensor, fmt::format("type {} is not known", type));
      } else if (set_bytes(tensor, offset)) {
        header_.tensors.push_back(std::move(tensor));
      }
    }
  }

  void read_shape(TensorInfo& tensor) {
    const auto axes = cursor_.value<std::uint32_t>();
    if (axes > kMostAxes) {
      cursor_.fail(fmt::format("the tensor '{}' has {} axes, at most {} are allowed",
                               quote_for_message(tensor.name), axes, kMostAxes));
    }
    for (std::uint32_t a = 0; a < axes; ++a) tensor.shape.push_back(cursor_.value<i64>());
    std::reverse(tensor.shape.begin(), tensor.shape.end());
  }

  /// Sets offset (still relative to the data) and bytes. Returns false after reporting a defect.
  bool set_bytes(TensorInfo& tensor, std::uint64_t offset) {
    const BlockType& type = *tensor.type;
    const bool is_negative = std::any_of(tensor.shape.begin(), tensor.shape.end(),
                                         [](i64 extent) { return extent < 0; });
    const auto elements = is_negative ? std::nullopt : element_count(tensor.shape);
    const i64 row = tensor.shape.empty() ? 1 : tensor.shape.back();
    const auto bytes = elements && row % type.elements == 0
                           ? checked_mul(*elements / type.elements, type.bytes)
                           : std::nullopt;
    if (!bytes) {
      report(ProblemKind::kTensorSize, tensor,
             fmt::format("the shape {} is no whole number of {} blocks of {}",
                         to_string(tensor.shape), type.name, type.elements));
      return false;
    }
    constexpr std::uint64_t kFarthest = std::uint64_t{1} << 62;
    if (offset % static_cast<std::uint64_t>(header_.alignment) != 0 || offset > kFarthest) {
      report(ProblemKind::kHeaderInvalid, tensor,
             fmt::format("the tensor's offset {} is not a multiple of the alignment, {}", offset,
                         header_.alignment));
      return false;
    }
    tensor.offset = static_cast<i64>(offset);
    tensor.bytes = *bytes;
    return true;
  }

  void report(ProblemKind kind, const TensorInfo& tensor, const std::string& message) {
    report_({kind,
             Error(ErrorCode::kTensorInvalid, message)
                 .at({input_.path, 0, 0, ""})
                 .tensor(quote_for_message(tensor.name)),
             ""});
  }

  const Input& input_;
  const ProblemSink& report_;
  Cursor cursor_;
  Header header_;
  std::uint64_t tensors_ = 0;
  std::uint64_t pairs_ = 0;
};

}  // namespace

const Pair* Header::find(std::string_view key) const {
  const auto found =
      std::find_if(pairs.begin(), pairs.end(), [key](const Pair& pair) { return pair.key == key; });
  return found == pairs.end() ? nullptr : &*found;
}

Header read_header(const Input& input, const ProblemSink& report) {
  return Reading(input, report).run();
}

}  // namespace shardtool::format::gguf

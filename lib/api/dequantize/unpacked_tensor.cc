#include "lib/api/dequantize/unpacked_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/cast/cast.h"
#include "kernels/decode/decode.h"
#include "lib/api/dequantize/code_box.h"
#include "lib/base/error.h"

namespace shardtool::api {
namespace {

/// Rows of codes in a tile that is turned, and its columns that are turned together: those of a
/// cache line.
constexpr i64 kTileRows = 128;
constexpr i64 kTurned = 16;

std::vector<double> numbers_of(const std::vector<std::byte>& bytes, Dtype dtype) {
  const i64 n = std::ssize(bytes) / (bits(dtype) / 8);
  std::vector<double> numbers(static_cast<size_t>(n));
  kernels::to_doubles(dtype, bytes.data(), n, numbers.data());
  return numbers;
}

/// True if the number's products with differences of codes are exact in F32: at most 12 significant
/// bits, and far from the limits of the exponent. NaN and infinities are.
bool is_short(double number) {
  constexpr std::uint64_t kLowBits = (std::uint64_t{1} << (52 - 11)) - 1;
  constexpr double kLargest = 0x1p100;
  constexpr double kSmallest = 0x1p-100;
  if (number == 0 || !std::isfinite(number)) return true;
  const double magnitude = std::abs(number);
  return (std::bit_cast<std::uint64_t>(number) & kLowBits) == 0 && magnitude <= kLargest &&
         magnitude >= kSmallest;
}

/// The stored numbers behind a box.
struct BoxNumbers {
  std::vector<MemberPart> parts;  ///< parallel to the weight's members
  std::vector<double> scales;     ///< with the common factor or divisor
  std::vector<i64> groups;        ///< of the rows or columns of the box; empty: in order
};

class Reading {
 public:
  Reading(const QuantisedWeight& weight, const CodeBox& box,
          std::span<const exec::SourceFile> files, exec::ComputedReport& report)
      : weight_(weight), box_(box), files_(files), report_(report) {
    report_.digests.resize(weight.members.size());
  }

  BoxNumbers read() {
    for (size_t m = 0; m < weight_.members.size(); ++m) {
      numbers_.parts.push_back(read_member(weight_.members[m], box_, files_, report_.digests[m]));
    }
    if (weight_.shape) require_shape();
    const Dtype dtype = weight_.scale_dtype.value_or(weight_.scales().tensor.spec.dtype);
    numbers_.scales = numbers_of(numbers_.parts[1].bytes, dtype);
    if (weight_.factor) {
      const double factor = all_of(*weight_.factor).front();
      for (double& scale : numbers_.scales) scale *= factor;
    }
    if (weight_.divisor) {
      const double divisor = all_of(*weight_.divisor).front();
      for (double& scale : numbers_.scales) scale /= divisor;
    }
    if (weight_.groups) read_groups();
    return std::move(numbers_);
  }

 private:
  std::vector<double> all_of(size_t member) const {
    return numbers_of(numbers_.parts[member].bytes, weight_.members[member].tensor.spec.dtype);
  }

  void require_shape() const {
    const std::vector<double> said = all_of(*weight_.shape);
    const Shape found{static_cast<i64>(said[0]), static_cast<i64>(said[1])};
    if (found == weight_.spec.shape) return;
    throw Error(ErrorCode::kDataMismatch,
                "the recorded shape of a packed weight does not match its codes")
        .tensor(weight_.members[*weight_.shape].tensor.spec.name)
        .note("found", to_string(found))
        .note("expected", to_string(weight_.spec.shape));
  }

  void read_groups() {
    const CodeAxis inputs = weight_.are_inputs_rows ? CodeAxis::kRow : CodeAxis::kColumn;
    const std::vector<double> all = all_of(*weight_.groups);
    const i64 groups = weight_.scales().tensor.spec.shape[weight_.are_inputs_rows ? 0 : 1];
    for (i64 i = box_.begin(inputs); i < box_.begin(inputs) + box_.size(inputs); ++i) {
      const auto group = static_cast<i64>(all[static_cast<size_t>(i)]);
      if (group < 0 || group >= groups) {
        throw Error(
            ErrorCode::kDataMismatch,
            fmt::format("input {} is in group {} of scales, which does not exist", i, group))
            .tensor(weight_.members[*weight_.groups].tensor.spec.name)
            .note("groups", std::to_string(groups));
      }
      numbers_.groups.push_back(groups == 1 ? 0 : group);
    }
  }

  const QuantisedWeight& weight_;
  const CodeBox& box_;
  std::span<const exec::SourceFile> files_;
  exec::ComputedReport& report_;
  BoxNumbers numbers_;
};

/// Rows of one stored number per block, expanded to one per column. The same row is often wanted
/// again.
template <class T>
class NumberRows {
 public:
  NumberRows(const QuantisedWeight& weight, size_t member, const CodeBox& box,
             const BoxNumbers& numbers)
      : part_(numbers.parts[member]),
        row_per_(codes_per_index(weight.members[member], CodeAxis::kRow)),
        column_per_(codes_per_index(weight.members[member], CodeAxis::kColumn)),
        box_(box) {
    const StoredMember& stored = weight.members[member];
    first_row_ = part_.first(stored, CodeAxis::kRow);
    first_column_ = part_.first(stored, CodeAxis::kColumn);
    const bool has_groups = weight.groups.has_value() && part_.sizes.size() > 1;
    if (has_groups && row_per_ == 0 && weight.are_inputs_rows) row_groups_ = numbers.groups.data();
    if (has_groups && column_per_ == 0 && !weight.are_inputs_rows)
      column_groups_ = numbers.groups.data();
    width_ = part_.sizes.empty() ? 1 : part_.sizes.back();
    if (part_.sizes.size() == 1) width_ = row_per_ > 0 ? 1 : part_.sizes[0];
  }

  /// Stored numbers per row of blocks.
  i64 width() const { return width_; }
  /// Row of blocks, in the part, of row `r` of the box.
  i64 row_of(i64 r) const {
    if (row_groups_ != nullptr) return row_groups_[r];
    return row_per_ > 0 ? (box_.row + r) / row_per_ - first_row_ : 0;
  }
  /// Expands a row of blocks.
  void expand(const T* row, T* columns) const {
    if (column_groups_ != nullptr) {
      for (i64 c = 0; c < box_.columns; ++c) columns[c] = row[column_groups_[c]];
      return;
    }
    if (column_per_ == 0) {
      std::fill_n(columns, box_.columns, row[0]);
      return;
    }
    for (i64 c = 0; c < box_.columns;) {
      const i64 block = (box_.column + c) / column_per_;
      const i64 end = std::min((block + 1) * column_per_ - box_.column, box_.columns);
      std::fill(columns + c, columns + end, row[block - first_column_]);
      c = end;
    }
  }

 private:
  const MemberPart& part_;
  i64 row_per_, column_per_;
  const CodeBox& box_;
  i64 first_row_ = 0, first_column_ = 0;
  i64 width_ = 1;
  const i64* row_groups_ = nullptr;
  const i64* column_groups_ = nullptr;
};

/// Rows of codes in words, unpacked one after the other.
class WordRows {
 public:
  /// `axis_per` is the number of rows per row of words: 1, or that of a word.
  WordRows(const QuantisedWeight& weight, size_t member, const MemberPart& part,
           bool is_packed_in_rows)
      : form_(weight.words), part_(part), is_packed_in_rows_(is_packed_in_rows) {
    word_bytes_ = bits(weight.members[member].tensor.spec.dtype) / 8;
    const StoredMember& stored = weight.members[member];
    const bool has_outer = codes_per_index(stored, CodeAxis::kOuter) > 0;
    words_ = 1;
    for (size_t a = has_outer ? 2 : 1; a < part.sizes.size(); ++a) words_ *= part.sizes[a];
    buffer_.resize(static_cast<size_t>(words_));
    codes_.resize(static_cast<size_t>(words_ * (is_packed_in_rows ? 1 : form_.per_word)));
  }

  /// Codes of a row of words; `place` is the row in it if words have codes of several rows.
  const std::uint8_t* codes(i64 word_row, i64 place) {
    if (word_row != loaded_) {
      kernels::load_words(part_.bytes.data() + word_row * words_ * word_bytes_, word_bytes_, words_,
                          buffer_.data());
      loaded_ = word_row;
    }
    if (is_packed_in_rows_) {
      kernels::codes_across(form_, place, buffer_.data(), words_, codes_.data());
    } else {
      kernels::codes_along(form_, buffer_.data(), std::ssize(codes_), codes_.data());
    }
    return codes_.data();
  }

 private:
  const kernels::WordForm& form_;
  const MemberPart& part_;
  bool is_packed_in_rows_;
  i64 word_bytes_ = 1;
  i64 words_ = 0;  ///< in a row
  i64 loaded_ = -1;
  std::vector<std::uint32_t> buffer_;
  std::vector<std::uint8_t> codes_;
};

/// Computes the rows of a box of codes.
template <class T>
class Rows {
 public:
  Rows(const QuantisedWeight& weight, const CodeBox& box, const BoxNumbers& numbers)
      : weight_(weight),
        box_(box),
        numbers_(numbers),
        scales_(numbers.scales.begin(), numbers.scales.end()),
        scale_rows_(weight, 1, box, numbers),
        scale_row_(static_cast<size_t>(box.columns)) {
    const Dtype codes = weight.codes().tensor.spec.dtype;
    value_of_ = weight.is_packed ? kernels::values_of_codes<T>(weight.kind, weight.words.bits)
                                 : kernels::values_of_bytes<T>(codes);
    if (weight.is_packed) words_.emplace(weight, 0, numbers.parts[0], weight.is_packed_in_rows);
    if (weight.zeros) prepare_zeros(*weight.zeros);
  }

  void compute(i64 r, T* values) {
    const i64 scale_row = scale_rows_.row_of(r);
    if (scale_row != expanded_scale_) {
      scale_rows_.expand(scales_.data() + scale_row * scale_rows_.width(), scale_row_.data());
      expanded_scale_ = scale_row;
    }
    if (weight_.zeros) expand_zeros(r);
    kernels::unpack_row<T>(
        {codes(r), weight_.zeros ? zero_row_.data() : nullptr, scale_row_.data()}, value_of_,
        box_.columns, values);
  }

 private:
  const std::uint8_t* codes(i64 r) {
    const MemberPart& part = numbers_.parts[0];
    const StoredMember& member = weight_.codes();
    if (!weight_.is_packed)
      return reinterpret_cast<const std::uint8_t*>(part.bytes.data()) + r * box_.columns;
    const i64 row = box_.row + r;
    const i64 per_row = codes_per_index(member, CodeAxis::kRow);
    const i64 first =
        part.first(member, CodeAxis::kColumn) * codes_per_index(member, CodeAxis::kColumn);
    return words_->codes(row / per_row - part.first(member, CodeAxis::kRow), row % per_row) +
           box_.column - first;
  }

  void prepare_zeros(size_t member) {
    zero_rows_.emplace(weight_, member, box_, numbers_);
    zero_row_.resize(static_cast<size_t>(box_.columns));
    const MemberPart& part = numbers_.parts[member];
    if (weight_.is_packed) {
      zero_words_.emplace(weight_, member, part, weight_.are_zeros_packed_in_rows);
      return;
    }
    const auto zeros = numbers_of(part.bytes, weight_.members[member].tensor.spec.dtype);
    zeros_.assign(zeros.begin(), zeros.end());
  }

  void expand_zeros(i64 r) {
    const i64 zero_row = zero_rows_->row_of(r);
    const i64 per_row = weight_.are_zeros_packed_in_rows ? weight_.words.per_word : 1;
    const i64 place = (box_.row + r) % per_row;
    const i64 key = zero_row * per_row + place;
    if (key == expanded_zero_) return;
    expanded_zero_ = key;
    if (!weight_.is_packed) {
      return zero_rows_->expand(zeros_.data() + zero_row * zero_rows_->width(), zero_row_.data());
    }
    const std::uint8_t* const codes = zero_words_->codes(zero_row, place);
    const auto value = [&](std::uint8_t code) {
      return value_of_[code] + static_cast<T>(weight_.zero_offset);
    };
    if (weight_.are_zeros_packed_in_rows) {
      zeros_.resize(static_cast<size_t>(zero_rows_->width()));
      std::transform(codes, codes + std::ssize(zeros_), zeros_.begin(), value);
      return zero_rows_->expand(zeros_.data(), zero_row_.data());
    }
    const std::uint8_t* const first = codes + box_.column % weight_.words.per_word;
    std::transform(first, first + box_.columns, zero_row_.begin(), value);
  }

  const QuantisedWeight& weight_;
  const CodeBox& box_;
  const BoxNumbers& numbers_;
  std::vector<T> scales_, zeros_;
  NumberRows<T> scale_rows_;
  std::optional<NumberRows<T>> zero_rows_;
  std::optional<WordRows> words_, zero_words_;
  std::vector<T> value_of_, scale_row_, zero_row_;
  i64 expanded_scale_ = -1, expanded_zero_ = -1;
};

template <class T>
constexpr Dtype kDtypeOf = sizeof(T) == sizeof(float) ? Dtype::kF32 : Dtype::kF64;

/// Rounds rows of values to the result's type.
template <class T>
kernels::CastCounts round_to(Dtype dtype, const T* values, i64 n, std::byte* result) {
  return kernels::cast(kDtypeOf<T>, dtype, reinterpret_cast<const std::byte*>(values), n, result);
}

/// Writes the rows of a box of codes as rows of the weight. `memory` is that of the box's first
/// element.
template <class T>
void write_rows(Rows<T>& rows, const CodeBox& box, Dtype dtype, const exec::ComputedBox& to,
                std::byte* memory, kernels::CastCounts& counts) {
  std::vector<T> values(static_cast<size_t>(box.columns));
  for (i64 r = 0; r < box.rows; ++r) {
    rows.compute(r, values.data());
    counts += round_to(dtype, values.data(), box.columns, memory + r * to.stride);
  }
}

/// Turns a few columns of a tile into lines of kTileRows.
template <class T>
void turn(const T* tile, i64 rows, i64 stride, i64 columns, T* lines) {
  for (i64 r = 0; r < rows; ++r) {
    for (i64 k = 0; k < columns; ++k) lines[k * kTileRows + r] = tile[r * stride + k];
  }
}

/// Same, for a weight whose rows are the columns of the codes: in tiles of some rows of codes.
template <class T>
void write_columns(Rows<T>& rows, const CodeBox& box, Dtype dtype, const exec::ComputedBox& to,
                   std::byte* memory, kernels::CastCounts& counts) {
  const i64 width = bits(dtype) / 8;
  std::vector<T> tile(static_cast<size_t>(kTileRows * box.columns));
  std::vector<T> lines(static_cast<size_t>(kTileRows * kTurned));
  for (i64 begin = 0; begin < box.rows; begin += kTileRows) {
    const i64 n = std::min(kTileRows, box.rows - begin);
    for (i64 r = 0; r < n; ++r) rows.compute(begin + r, tile.data() + r * box.columns);
    for (i64 c = 0; c < box.columns; c += kTurned) {
      const i64 columns = std::min(kTurned, box.columns - c);
      turn(tile.data() + c, n, box.columns, columns, lines.data());
      for (i64 k = 0; k < columns; ++k) {
        std::byte* const line = memory + (c + k) * to.stride + begin * width;
        counts += round_to(dtype, lines.data() + k * kTileRows, n, line);
      }
    }
  }
}

template <class T>
void compute_with(const QuantisedWeight& weight, const CodeBox& box, const BoxNumbers& numbers,
                  Dtype dtype, const exec::ComputedBox& to, std::byte* memory,
                  kernels::CastCounts& counts) {
  Rows<T> rows(weight, box, numbers);
  if (weight.is_turned) {
    write_columns(rows, box, dtype, to, memory, counts);
  } else {
    write_rows(rows, box, dtype, to, memory, counts);
  }
}

/// True if F32 holds every (code - zero) * scale exactly.
bool fits_f32(const QuantisedWeight& weight, const BoxNumbers& numbers) {
  const bool is_float =
      !weight.is_packed && dtype_info(weight.codes().tensor.spec.dtype).kind == DtypeKind::kFloat;
  if (is_float && weight.zeros) return false;
  return std::all_of(numbers.scales.begin(), numbers.scales.end(), is_short);
}

}  // namespace

UnpackedTensor::UnpackedTensor(QuantisedWeight weight, Dtype dtype)
    : weight_(std::move(weight)), dtype_(dtype) {
  weight_.spec.dtype = dtype;
}

void UnpackedTensor::compute(const exec::ComputedBox& box, std::span<const exec::SourceFile> files,
                             exec::ComputedReport& report) const {
  const Shape& shape = weight_.spec.shape;
  const i64 rows = shape[shape.size() - 2];
  for (i64 row = box.row; row < box.row + box.rows;) {
    const i64 outer = row / rows;
    const i64 end = std::min(box.row + box.rows, (outer + 1) * rows);
    CodeBox codes{outer, row % rows, end - row, box.column, box.columns};
    if (weight_.is_turned) {
      std::swap(codes.row, codes.column);
      std::swap(codes.rows, codes.columns);
    }
    const BoxNumbers numbers = Reading(weight_, codes, files, report).read();
    std::byte* const memory = box.memory + (row - box.row) * box.stride;
    const auto with = fits_f32(weight_, numbers) ? compute_with<float> : compute_with<double>;
    with(weight_, codes, numbers, dtype_, box, memory, report.counts);
    row = end;
  }
}

void UnpackedTensor::check(const exec::ComputedReport& whole) const {
  for (size_t m = 0; m < weight_.members.size(); ++m) {
    const LogicalTensor& tensor = weight_.members[m].tensor;
    if (!tensor.digest || *tensor.digest == whole.digests.at(m)) continue;
    throw Error(ErrorCode::kDataMismatch, "the data does not match the digest in the manifest")
        .tensor(tensor.spec.name)
        .note("expected", fmt::format("{:016x}", *tensor.digest))
        .note("found", fmt::format("{:016x}", whole.digests[m]))
        .help("a shard was changed or damaged after it was written: split the checkpoint again");
  }
}

i64 UnpackedTensor::stored_bytes() const {
  i64 bytes = 0;
  for (const StoredMember& member : weight_.members) {
    bytes += byte_size(member.tensor.spec.dtype, member.tensor.spec.shape).value_or(0);
  }
  return bytes;
}

format::DequantizeRecord UnpackedTensor::record(const exec::ComputedReport* whole) const {
  format::DequantizeRecord record{weight_.scheme, {}};
  for (size_t m = 0; m < weight_.members.size(); ++m) {
    const TensorSpec& spec = weight_.members[m].tensor.spec;
    record.from.push_back({spec.name, spec.dtype, spec.shape, {}});
    if (whole != nullptr) record.from.back().digest = whole->digests.at(m);
  }
  return record;
}

}  // namespace shardtool::api

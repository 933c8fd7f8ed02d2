#include "lib/exec/shifted.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "kernels/cast/cast.h"
#include "kernels/crc64/crc64.h"
#include "kernels/xxh3/xxh3.h"
#include "lib/base/error.h"

namespace shardtool::exec {
namespace {

using Bytes = std::vector<std::byte>;

/// Element format: integers, or floating point by the widths of mantissa and exponent.
struct Format {
  i64 width = 0;  ///< bytes
  int mantissa_bits = 0;
  int exponent_bits = 0;  ///< 0: an integer
};

Format format_of(const std::string& name, Dtype dtype, const Shape& shape) {
  const std::map<Dtype, Format> formats = {{Dtype::kI32, {4, 0, 0}},
                                           {Dtype::kI64, {8, 0, 0}},
                                           {Dtype::kF16, {2, 10, 5}},
                                           {Dtype::kBF16, {2, 7, 8}},
                                           {Dtype::kF32, {4, 23, 8}}};
  const auto format = formats.find(dtype);
  if (shape.size() != 1 || format == formats.end()) {
    throw Error(ErrorCode::kUnsupported,
                "only vectors of I32, I64, F16, BF16 or F32 are stored per device")
        .tensor(name)
        .note("found", fmt::format("{} {}", to_string(dtype), to_string(shape)));
  }
  if (shape[0] > kMaxShiftedBytes / format->second.width) {
    throw Error(ErrorCode::kLimit,
                fmt::format("{} values are too many to be stored per device", shape[0]))
        .tensor(name);
  }
  return format->second;
}

/// Bits of an element; the value of an integer.
i64 decode(const std::byte* at, const Format& format) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<size_t>(format.width));
  const bool is_int32 = format.exponent_bits == 0 && format.width == 4;
  return is_int32 ? static_cast<std::int32_t>(bits) : static_cast<i64>(bits);
}

/// Stores an element in little-endian order, which is also that of the supported machines.
void encode(i64 value, std::byte* at, const Format& format) {
  std::memcpy(at, &value, static_cast<size_t>(format.width));
}

/// Bits of value / 2^halvings. Zero, infinities and NaN stay unchanged; nullopt if the format has
/// no such number.
std::optional<i64> halved(i64 bits, i64 halvings, const Format& format) {
  const i64 hidden = i64{1} << format.mantissa_bits;
  const i64 largest = (i64{1} << format.exponent_bits) - 1;
  const i64 exponent = bits >> format.mantissa_bits & largest;
  const i64 mantissa = bits & (hidden - 1);
  if (exponent == largest || (exponent == 0 && mantissa == 0)) return bits;
  const i64 sign = bits & hidden << format.exponent_bits;
  // The quotient is digits * 2^place times the smallest number of the format.
  i64 digits = exponent == 0 ? mantissa : hidden + mantissa;
  i64 place = std::max<i64>(exponent - 1, 0) - halvings;
  for (; digits < hidden && place > 0; --place) digits *= 2;
  for (; place < 0 && digits % 2 == 0; ++place) digits /= 2;
  if (place < 0 || place + 1 >= largest) return std::nullopt;
  return sign |
         (digits < hidden ? digits : (place + 1) << format.mantissa_bits | (digits - hidden));
}

i64 addend_of(std::span<const index::ValueShift> shifts, int holder, i64 local) {
  if (shifts.empty()) return 0;
  const auto& addends = shifts[static_cast<size_t>(holder)].addends;
  if (addends.empty()) return 0;
  return addends.size() == 1 ? addends[0] : addends[static_cast<size_t>(local)];
}

Bytes read_holder(const MoveSide& side, int holder, i64 bytes,
                  std::span<const SourceFile> sources) {
  const Slot& slot = side.slots[static_cast<size_t>(holder)];
  Bytes buffer(static_cast<size_t>(bytes));
  iovec part{buffer.data(), buffer.size()};
  if (bytes > 0) sources[static_cast<size_t>(slot.file)].read_scattered({&part, 1}, slot.offset);
  return buffer;
}

/// Calls use(local, global) for every index of a map that has an image.
template <class Use>
void for_each_index(const index::AxisMap& map, Use use) {
  for (const index::Piece& p : map.pieces()) {
    for (i64 i = 0; i < p.size; ++i) use(p.local + i, p.global + i);
  }
}

Bytes encoded(const std::vector<i64>& values, const Format& format) {
  const auto width = static_cast<size_t>(format.width);
  Bytes bytes(values.size() * width);
  for (size_t i = 0; i < values.size(); ++i) encode(values[i], bytes.data() + i * width, format);
  return bytes;
}

i64 halvings_of(std::span<const index::ValueShift> shifts, int holder) {
  return shifts.empty() ? 0 : shifts[static_cast<size_t>(holder)].halvings;
}

/// Direction of a shift: from logical to stored values, or back.
enum Direction : int { kStore = 1, kLoad = -1 };

/// value + addend, or value - addend, which must be an integer of the format.
i64 sum_of(const std::string& name, i64 value, Direction direction, i64 addend,
           const Format& format) {
  const auto change = checked_mul(addend, direction);
  const auto sum = change ? checked_add(value, *change) : std::nullopt;
  const bool is_wide = format.width == sizeof(i64);
  if (sum && (is_wide || std::in_range<std::int32_t>(*sum))) return *sum;
  throw Error(ErrorCode::kDataMismatch, "a value and its shift leave the range of the dtype")
      .tensor(name)
      .note("found", fmt::format("{} {} {}", value, direction == kStore ? "plus" : "minus", addend))
      .note("expected", fmt::format("an integer of {} bits", format.width * CHAR_BIT));
}

/// value + addend, or value / 2^halvings; for kLoad the inverse.
i64 shifted(const std::string& name, i64 value, Direction direction, i64 addend, i64 halvings,
            const Format& format) {
  if (format.exponent_bits == 0) return sum_of(name, value, direction, addend, format);
  if (const auto exact = halved(value, direction * halvings, format)) return *exact;
  throw Error(ErrorCode::kDataMismatch,
              "a value is too small to be divided among the devices exactly")
      .tensor(name)
      .help("say \"reduced_bias\": \"first\" or \"replicate\"");
}

Error foreign_group(const std::string& name, i64 element, i64 group, i64 first, i64 groups) {
  return Error(
             ErrorCode::kDataMismatch,
             fmt::format("element {} points to group {}, which is on another rank", element, group))
      .tensor(name)
      .note("expected", fmt::format("groups {} to {}", first, first + groups - 1))
      .help(
          "the groups are not in the order of the inputs: if the model was quantised with "
          "activation order, config.json must say \"desc_act\": true");
}

/// Bytes of one destination. Padding is zero.
Bytes stored_bytes(const ShiftedMove& move, int holder, const std::vector<i64>& logical,
                   const Format& format) {
  constexpr i64 kAny = std::numeric_limits<i64>::max();
  const index::AxisMap map = move.move.to.holders->region(holder)[0];
  const bool is_shifted = !move.to.empty();
  const i64 below =
      is_shifted ? move.to[static_cast<size_t>(holder)].stored_below.value_or(kAny) : kAny;
  std::vector<i64> values(static_cast<size_t>(map.local_size()));
  for_each_index(map, [&](i64 local, i64 global) {
    const i64 addend = addend_of(move.to, holder, local);
    const i64 value = logical[static_cast<size_t>(global)];
    const i64 stored =
        shifted(move.move.name, value, kStore, addend, halvings_of(move.to, holder), format);
    if (below != kAny && (stored < 0 || stored >= below))
      throw foreign_group(move.move.name, global, value, -addend, below);
    values[static_cast<size_t>(local)] = stored;
  });
  return encoded(values, format);
}

}  // namespace

std::vector<i64> load_shifted(const std::string& name, Dtype dtype, const Shape& shape,
                              const MoveSide& side, std::span<const index::ValueShift> shifts,
                              std::span<const SourceFile> sources) {
  return load_shifted(name, dtype, shape, *side.holders, shifts, [&](int holder, i64 bytes) {
    return read_holder(side, holder, bytes, sources);
  });
}

std::vector<i64> load_shifted(const std::string& name, Dtype dtype, const Shape& shape,
                              const index::HolderSet& holders,
                              std::span<const index::ValueShift> shifts,
                              const HolderBytes& bytes_of) {
  const Format format = format_of(name, dtype, shape);
  std::vector<i64> values(static_cast<size_t>(shape[0]));
  std::vector<bool> is_known(values.size());
  for (int holder = 0; holder < holders.size(); ++holder) {
    const index::AxisMap map = holders.region(holder)[0];
    const Bytes bytes = bytes_of(holder, map.local_size() * format.width);
    for_each_index(map, [&](i64 local, i64 global) {
      const auto at = static_cast<size_t>(global);
      const i64 stored = decode(bytes.data() + local * format.width, format);
      const i64 value = shifted(name, stored, kLoad, addend_of(shifts, holder, local),
                                halvings_of(shifts, holder), format);
      if (is_known[at] && values[at] != value) {
        throw Error(ErrorCode::kDataMismatch, fmt::format("replicas differ at element {}", global))
            .tensor(name)
            .note("found", fmt::format("{} and {}", values[at], value));
      }
      values[at] = value;
      is_known[at] = true;
    });
  }
  const auto missing = std::find(is_known.begin(), is_known.end(), false);
  if (missing != is_known.end()) {
    throw Error(ErrorCode::kCoverage,
                fmt::format("no shard holds element {}", missing - is_known.begin()))
        .tensor(name);
  }
  return values;
}

void restore_values(const std::string& name, Dtype dtype, const index::ValueShift& shift, i64 first,
                    std::span<std::byte> bytes) {
  if (shift.addends.empty()) return;
  const i64 width = bits(dtype) / CHAR_BIT;
  const i64 count = std::ssize(bytes) / width;
  const Format format = format_of(name, dtype, {count});
  for (i64 i = 0; i < count; ++i) {
    std::byte* const at = bytes.data() + i * width;
    const i64 addend = addend_of({&shift, 1}, 0, first + i);
    encode(shifted(name, decode(at, format), kLoad, addend, 0, format), at, format);
  }
}

std::uint64_t digest_of_values(const std::vector<i64>& values, Dtype dtype) {
  return kernels::Crc64::of(encoded(values, Format{bits(dtype) / CHAR_BIT, 0, 0}));
}

std::vector<i64> cast_values(const std::string& name, const std::vector<i64>& values, Dtype from,
                             Dtype to, kernels::CastCounts& counts) {
  const i64 n = std::ssize(values);
  const Format result = format_of(name, to, {n});
  const Bytes elements = encoded(values, format_of(name, from, {n}));
  Bytes results(values.size() * static_cast<size_t>(result.width));
  counts = kernels::cast(from, to, elements.data(), n, results.data());
  std::vector<i64> cast;
  for (i64 i = 0; i < n; ++i) cast.push_back(decode(results.data() + i * result.width, result));
  return cast;
}

CopiedTensor copy_shifted(const ShiftedMove& move, std::span<const SourceFile> sources,
                          std::span<const TargetFile> targets) {
  const TensorMove& m = move.move;
  std::vector<i64> logical = load_shifted(m.name, m.dtype, m.shape, m.from, move.from, sources);
  const Format format = format_of(m.name, m.result_dtype(), m.shape);
  CopiedTensor done;
  done.digest = digest_of_values(logical, m.dtype);
  if (m.expected_digest && *m.expected_digest != done.digest) {
    throw Error(ErrorCode::kDataMismatch, "the data does not match the digest in the manifest")
        .tensor(m.name)
        .note("expected", fmt::format("{:016x}", *m.expected_digest))
        .note("found", fmt::format("{:016x}", done.digest));
  }
  if (m.cast_to) {
    done.cast.emplace().source_digest = done.digest;
    logical = cast_values(m.name, logical, m.dtype, *m.cast_to, done.cast->counts);
    done.digest = digest_of_values(logical, *m.cast_to);
  }
  std::vector<bool> is_wanted(logical.size());
  for (int holder = 0; holder < m.to.holders->size(); ++holder) {
    const Bytes bytes = stored_bytes(move, holder, logical, format);
    const Slot& slot = m.to.slots[static_cast<size_t>(holder)];
    if (!targets.empty()) targets[static_cast<size_t>(slot.file)].write(bytes, slot.offset);
    done.xxh3.push_back(kernels::xxh3(bytes));
    const index::AxisMap map = m.to.holders->region(holder)[0];
    for_each_index(map, [&](i64, i64 global) { is_wanted[static_cast<size_t>(global)] = true; });
  }
  done.is_whole = std::find(is_wanted.begin(), is_wanted.end(), false) == is_wanted.end();
  return done;
}

}  // namespace shardtool::exec

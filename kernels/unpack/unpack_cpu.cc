#include <climits>
#include <cstring>
#include <numeric>

#include "kernels/decode/decode.h"
#include "kernels/decode/element.h"
#include "kernels/unpack/unpack.h"

namespace shardtool::kernels {
namespace {

constexpr i64 kByteCodes = 256;

/// The largest E2M1 code is a number; in 8-bit formats it is NaN.
double value_of_e2m1(std::uint32_t code) {
  constexpr FloatFormat kE2M1{2, 1, 1, false, false};
  constexpr std::uint32_t kLargestCode = 7;
  constexpr double kLargest = 6;
  const std::uint32_t magnitude = code & kLargestCode;
  const double size = magnitude == kLargestCode ? kLargest : kernels::value_of(magnitude, kE2M1);
  return code > kLargestCode ? -size : size;
}

using Shifts = std::array<std::uint32_t, sizeof(std::uint32_t) * CHAR_BIT>;

/// Unpacks whole words of a number of codes that the compiler knows.
template <size_t kPerWord>
void unpack_words(const Shifts& shifts, std::uint32_t mask, const std::uint32_t* words, i64 n,
                  std::uint8_t* codes) {
  for (i64 w = 0; w < n; ++w, codes += kPerWord) {
    for (size_t place = 0; place < kPerWord; ++place) {
      codes[place] = static_cast<std::uint8_t>(words[w] >> shifts[place] & mask);
    }
  }
}

/// Returns false, and does nothing, for another number of codes than most formats have.
bool unpack_whole(i64 per_word, const Shifts& shifts, std::uint32_t mask,
                  const std::uint32_t* words, i64 n, std::uint8_t* codes) {
  switch (per_word) {
    case 2:
      unpack_words<2>(shifts, mask, words, n, codes);
      return true;
    case 4:
      unpack_words<4>(shifts, mask, words, n, codes);
      return true;
    case 8:
      unpack_words<8>(shifts, mask, words, n, codes);
      return true;
    default:
      return false;
  }
}

}  // namespace

template <class T>
std::vector<T> values_of_codes(CodeKind kind, i64 bits) {
  const i64 codes = i64{1} << bits;
  std::vector<T> values;
  for (i64 code = 0; code < codes; ++code) {
    if (kind == CodeKind::kE2M1) {
      values.push_back(static_cast<T>(value_of_e2m1(static_cast<std::uint32_t>(code))));
    } else {
      values.push_back(static_cast<T>(kind == CodeKind::kOffset ? code - codes / 2 : code));
    }
  }
  return values;
}

template <class T>
std::vector<T> values_of_bytes(Dtype dtype) {
  std::array<std::uint8_t, kByteCodes> patterns{};
  std::iota(patterns.begin(), patterns.end(), std::uint8_t{0});
  std::vector<double> values(patterns.size());
  to_doubles(dtype, reinterpret_cast<const std::byte*>(patterns.data()), kByteCodes, values.data());
  return {values.begin(), values.end()};
}

i64 WordForm::shift_of(i64 place) const {
  const auto known = static_cast<size_t>(place);
  return (known < order.size() ? order[known] : place) * bits;
}

void load_words(const std::byte* bytes, i64 word_bytes, i64 n, std::uint32_t* words) {
  if (word_bytes == static_cast<i64>(sizeof(std::uint32_t))) {
    std::memcpy(words, bytes, static_cast<size_t>(n) * sizeof(std::uint32_t));
    return;
  }
  for (i64 i = 0; i < n; ++i) words[i] = std::to_integer<std::uint32_t>(bytes[i]);
}

void codes_along(const WordForm& form, const std::uint32_t* words, i64 n, std::uint8_t* codes) {
  const std::uint32_t mask = (1U << form.bits) - 1;
  Shifts shifts{};
  for (i64 place = 0; place < form.per_word; ++place) {
    shifts[static_cast<size_t>(place)] = static_cast<std::uint32_t>(form.shift_of(place));
  }
  const i64 whole = n / form.per_word;
  const bool is_unrolled = unpack_whole(form.per_word, shifts, mask, words, whole, codes);
  const i64 done = is_unrolled ? whole : 0;
  words += done;
  for (i64 c = done * form.per_word; c < n; ++words) {
    const std::uint32_t all = *words;
    for (i64 place = 0; place < form.per_word && c < n; ++place, ++c) {
      codes[c] = static_cast<std::uint8_t>(all >> shifts[static_cast<size_t>(place)] & mask);
    }
  }
}

void codes_across(const WordForm& form, i64 place, const std::uint32_t* words, i64 n,
                  std::uint8_t* codes) {
  const std::uint32_t mask = (1U << form.bits) - 1;
  const i64 shift = form.shift_of(place);
  for (i64 c = 0; c < n; ++c) codes[c] = static_cast<std::uint8_t>(words[c] >> shift & mask);
}

template <class T>
void unpack_row(const RowNumbers<T>& row, const std::vector<T>& value_of, i64 width, T* values) {
  if (row.zeros == nullptr) {
    for (i64 c = 0; c < width; ++c) values[c] = value_of[row.codes[c]] * row.scales[c];
    return;
  }
  for (i64 c = 0; c < width; ++c) {
    values[c] = (value_of[row.codes[c]] - row.zeros[c]) * row.scales[c];
  }
}

template <class T>
void unpack_row(const RowNumbers<T>& row, const ColumnPlaces& at, const std::vector<T>& value_of,
                i64 width, T* values) {
  for (i64 c = 0; c < width; ++c) {
    const i64 code = at.codes[c];
    values[c] =
        code < 0 ? T{0}
                 : (value_of[row.codes[code]] - row.zeros[at.zeros[c]]) * row.scales[at.scales[c]];
  }
}

template std::vector<float> values_of_codes<float>(CodeKind, i64);
template std::vector<double> values_of_codes<double>(CodeKind, i64);
template std::vector<float> values_of_bytes<float>(Dtype);
template std::vector<double> values_of_bytes<double>(Dtype);
template void unpack_row<float>(const RowNumbers<float>&, const std::vector<float>&, i64, float*);
template void unpack_row<double>(const RowNumbers<double>&, const std::vector<double>&, i64,
                                 double*);
template void unpack_row<float>(const RowNumbers<float>&, const ColumnPlaces&,
                                const std::vector<float>&, i64, float*);
template void unpack_row<double>(const RowNumbers<double>&, const ColumnPlaces&,
                                 const std::vector<double>&, i64, double*);

}  // namespace shardtool::kernels

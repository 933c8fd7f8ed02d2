#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/checked.h"
#include "lib/base/dtype.h"

/// Arithmetic of quantised weights: a weight is (code - zero) * scale. Used where weights are
/// computed with and where they are written as floats.
namespace shardtool::kernels {

/// Meaning of a code of at most 8 bits. kOffset: half the range is subtracted. kE2M1: a float of
/// the OCP microscaling specification, of 4 bits.
enum class CodeKind { kUnsigned, kOffset, kE2M1 };

/// Value of every code. T is float or double.
template <class T>
std::vector<T> values_of_codes(CodeKind kind, i64 bits);
/// Value of every bit pattern of an 8-bit dtype.
template <class T>
std::vector<T> values_of_bytes(Dtype dtype);

/// Codes in words of 8 or 32 bits, from the low bits up.
struct WordForm {
  i64 per_word = 8;
  i64 bits = 4;
  /// Index of each packed number's code in a word.
  std::array<int, 8> order = {0, 1, 2, 3, 4, 5, 6, 7};

  /// Bits below the code of the packed number `place`.
  i64 shift_of(i64 place) const;
};

/// Widens words of `word_bytes` bytes (1 or 4, little-endian).
void load_words(const std::byte* bytes, i64 word_bytes, i64 n, std::uint32_t* words);
/// Unpacks `n` codes that follow each other, beginning with a whole word.
void codes_along(const WordForm& form, const std::uint32_t* words, i64 n, std::uint8_t* codes);
/// Unpacks the packed number `place` of each of `n` words.
void codes_across(const WordForm& form, i64 place, const std::uint32_t* words, i64 n,
                  std::uint8_t* codes);

/// Codes, zeros and scales for one row of a weight. `zeros` may be null: all are zero.
template <class T>
struct RowNumbers {
  const std::uint8_t* codes = nullptr;
  const T* zeros = nullptr;
  const T* scales = nullptr;
};

/// Index of the numbers of every column; null: the column's own index.
struct ColumnPlaces {
  const i64* codes = nullptr;  ///< -1: the weight is zero (padding)
  const i64* zeros = nullptr;
  const i64* scales = nullptr;
};

/// Computes (code - zero) * scale for a row of `width` columns. `value_of` has the value of every
/// code. The result is rounded once if the difference is exact: always, for codes of 8 bits.
template <class T>
void unpack_row(const RowNumbers<T>& row, const std::vector<T>& value_of, i64 width, T* values);
/// The same with the indices of every column; requires all three, and zeros.
template <class T>
void unpack_row(const RowNumbers<T>& row, const ColumnPlaces& at, const std::vector<T>& value_of,
                i64 width, T* values);

}  // namespace shardtool::kernels

#include "kernels/unpack/unpack.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "kernels/decode/decode.h"

namespace shardtool::kernels {
namespace {

using Random = std::mt19937;

i64 any(Random& random, i64 low, i64 high) {
  return std::uniform_int_distribution<i64>(low, high)(random);
}

/// Packs codes one after the other, the first into the lowest bits, by the order of the form.
std::vector<std::byte> packed(const WordForm& form, i64 word_bytes,
                              const std::vector<std::uint8_t>& codes) {
  std::vector<std::byte> bytes(
      static_cast<size_t>(ceil_div(std::ssize(codes), form.per_word) * word_bytes));
  for (i64 i = 0; i < std::ssize(codes); ++i) {
    const i64 place = i % form.per_word;
    const i64 slot =
        place < std::ssize(form.order) ? form.order[static_cast<size_t>(place)] : place;
    for (i64 b = 0; b < form.bits; ++b) {
      const i64 at = i / form.per_word * word_bytes * 8 + slot * form.bits + b;
      const int bit = codes[static_cast<size_t>(i)] >> b & 1;
      bytes[static_cast<size_t>(at / 8)] |= static_cast<std::byte>(bit << (at % 8));
    }
  }
  return bytes;
}

TEST_CASE("codes along a row and across rows are those that were packed") {
  Random random(1);
  const std::vector<WordForm> forms = {{8, 4}, {4, 8}, {16, 2}, {8, 4, {0, 4, 1, 5, 2, 6, 3, 7}},
                                       {2, 4}, {1, 8}, {4, 2}};
  for (const WordForm& form : forms) {
    const i64 word_bytes = form.per_word * form.bits / 8;
    for (int round = 0; round < 50; ++round) {
      const i64 n = any(random, 1, 100);
      std::vector<std::uint8_t> codes(static_cast<size_t>(n));
      for (auto& code : codes)
        code = static_cast<std::uint8_t>(any(random, 0, (1 << form.bits) - 1));
      const auto bytes = packed(form, word_bytes, codes);
      const i64 n_words = ceil_div(n, form.per_word);
      std::vector<std::uint32_t> words(static_cast<size_t>(n_words));
      load_words(bytes.data(), word_bytes, n_words, words.data());
      std::vector<std::uint8_t> found(codes.size());
      codes_along(form, words.data(), n, found.data());
      CHECK(found == codes);
      for (i64 place = 0; place < form.per_word; ++place) {
        std::vector<std::uint8_t> column(words.size());
        codes_across(form, place, words.data(), n_words, column.data());
        for (i64 w = 0; w < n_words && w * form.per_word + place < n; ++w) {
          REQUIRE(column[static_cast<size_t>(w)] ==
                  codes[static_cast<size_t>(w * form.per_word + place)]);
        }
      }
    }
  }
}

TEST_CASE("codes have the values of their kinds") {
  const std::vector<double> e2m1 = {0,   0.5,  1,  1.5,  2,  3,  4,  6,
                                    -0., -0.5, -1, -1.5, -2, -3, -4, -6};
  const auto found = values_of_codes<double>(CodeKind::kE2M1, 4);
  CHECK(std::memcmp(found.data(), e2m1.data(), e2m1.size() * sizeof(double)) == 0);
  for (const i64 bits : {1, 2, 4, 8}) {
    const auto plain = values_of_codes<float>(CodeKind::kUnsigned, bits);
    const auto offset = values_of_codes<double>(CodeKind::kOffset, bits);
    for (i64 code = 0; code < (i64{1} << bits); ++code) {
      CHECK(plain[static_cast<size_t>(code)] == static_cast<float>(code));
      CHECK(offset[static_cast<size_t>(code)] ==
            static_cast<double>(code - (i64{1} << (bits - 1))));
    }
  }
  for (const Dtype dtype : {Dtype::kF8E4M3, Dtype::kF8E5M2, Dtype::kF8E4M3Fnuz, Dtype::kI8}) {
    const auto values = values_of_bytes<float>(dtype);
    for (int i = 0; i < 256; ++i) {
      const auto byte = static_cast<std::byte>(i);
      double value = 0;
      to_doubles(dtype, &byte, 1, &value);
      const double mine = values[static_cast<size_t>(i)];
      CHECK((mine == value || (std::isnan(mine) && std::isnan(value))));
    }
  }
}

TEST_CASE("a row is (code - zero) * scale, in the given places, and padding is zero") {
  Random random(2);
  for (int round = 0; round < 100; ++round) {
    const i64 width = any(random, 1, 70);
    const auto size = static_cast<size_t>(width);
    std::vector<std::uint8_t> codes(size);
    std::vector<double> zeros(size), scales(size), values(size), placed(size), without(size);
    std::vector<float> few_zeros(size), few_scales(size), few(size);
    std::vector<i64> code_at(size), zero_at(size), scale_at(size);
    for (size_t c = 0; c < size; ++c) {
      codes[c] = static_cast<std::uint8_t>(any(random, 0, 255));
      zeros[c] = few_zeros[c] = static_cast<float>(any(random, 0, 255));
      scales[c] = few_scales[c] = std::ldexp(static_cast<float>(any(random, -2047, 2047)), -9);
      code_at[c] = any(random, -1, width - 1);
      zero_at[c] = any(random, 0, width - 1);
      scale_at[c] = any(random, 0, width - 1);
    }
    const auto value_of = values_of_codes<double>(CodeKind::kUnsigned, 8);
    unpack_row<double>({codes.data(), zeros.data(), scales.data()}, value_of, width, values.data());
    unpack_row<double>({codes.data(), nullptr, scales.data()}, value_of, width, without.data());
    unpack_row<double>({codes.data(), zeros.data(), scales.data()},
                       {code_at.data(), zero_at.data(), scale_at.data()}, value_of, width,
                       placed.data());
    unpack_row<float>({codes.data(), few_zeros.data(), few_scales.data()},
                      values_of_codes<float>(CodeKind::kUnsigned, 8), width, few.data());
    for (size_t c = 0; c < size; ++c) {
      REQUIRE(values[c] == (codes[c] - zeros[c]) * scales[c]);
      REQUIRE(without[c] == codes[c] * scales[c]);
      REQUIRE(few[c] == values[c]);
      const auto at = static_cast<size_t>(code_at[c]);
      const double expected = code_at[c] < 0
                                  ? 0.0
                                  : (codes[at] - zeros[static_cast<size_t>(zero_at[c])]) *
                                        scales[static_cast<size_t>(scale_at[c])];
      REQUIRE(placed[c] == expected);
    }
  }
}

}  // namespace
}  // namespace shardtool::kernels

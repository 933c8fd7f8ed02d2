#include "lib/engine/weights/packed_grid.h"

#include <algorithm>
#include <climits>

namespace shardtool::engine {

PackedGrid::PackedGrid(const model::PackedWeight& weight, const WeightSource& stored, Dtype word,
                       const StoredRows& rows, i64 columns, bool is_packed_in_rows)
    : form_(weight.words()), columns_(columns), is_packed_in_rows_(is_packed_in_rows) {
  StoredRows words = rows;
  words_in_row_ = columns;
  if (is_packed_in_rows) {
    words.begin = rows.begin / form_.per_word;
    words.end = ceil_div(rows.end, form_.per_word);
  } else {
    words_in_row_ = ceil_div(columns, form_.per_word);
  }
  first_word_row_ = words.begin;
  const i64 count = std::max<i64>(0, words.end - words.begin) * words_in_row_;
  const i64 word_bytes = shardtool::bits(word) / CHAR_BIT;
  std::vector<std::byte> bytes(static_cast<size_t>(count * word_bytes));
  if (bytes.empty()) return;
  stored.read(words, bytes);
  words_.resize(static_cast<size_t>(count));
  kernels::load_words(bytes.data(), word_bytes, count, words_.data());
}

const std::uint32_t* PackedGrid::words_of_row(i64 word_row) const {
  return words_.data() + (word_row - first_word_row_) * words_in_row_;
}

void PackedGrid::codes_of_row(i64 row, std::uint8_t* codes) const {
  if (is_packed_in_rows_) {
    return kernels::codes_across(form_, row % form_.per_word, words_of_row(row / form_.per_word),
                                 columns_, codes);
  }
  kernels::codes_along(form_, words_of_row(row), columns_, codes);
}

}  // namespace shardtool::engine

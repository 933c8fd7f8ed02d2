#include "lib/engine/weights/packed_grid.h"

#include <algorithm>
#include <climits>
#include <cstring>

namespace shardtool::engine {

PackedGrid::PackedGrid(const model::PackedWeight& weight, const WeightSource& stored, Dtype word,
                       const StoredRows& rows, i64 columns, bool is_packed_in_rows)
    : per_word_(weight.per_word),
      bits_(weight.bits),
      columns_(columns),
      is_packed_in_rows_(is_packed_in_rows) {
  for (i64 place = 0; place < per_word_; ++place) {
    const auto known = static_cast<size_t>(place);
    const i64 code = known < weight.format->order.size() ? weight.format->order[known] : place;
    shifts_.push_back(code * bits_);
  }
  StoredRows words = rows;
  words_in_row_ = columns;
  if (is_packed_in_rows) {
    words.begin = rows.begin / per_word_;
    words.end = ceil_div(rows.end, per_word_);
  } else {
    words_in_row_ = ceil_div(columns, per_word_);
  }
  first_word_row_ = words.begin;
  const i64 count = std::max<i64>(0, words.end - words.begin) * words_in_row_;
  const i64 word_bytes = shardtool::bits(word) / CHAR_BIT;
  std::vector<std::byte> bytes(static_cast<size_t>(count * word_bytes));
  if (bytes.empty()) return;
  stored.read(words, bytes);
  words_.resize(static_cast<size_t>(count));
  for (i64 i = 0; i < count; ++i) {
    if (word_bytes == 1) {
      words_[static_cast<size_t>(i)] =
          std::to_integer<std::uint32_t>(bytes[static_cast<size_t>(i)]);
    } else {
      std::memcpy(&words_[static_cast<size_t>(i)], bytes.data() + i * word_bytes,
                  sizeof(std::uint32_t));
    }
  }
}

const std::uint32_t* PackedGrid::words_of_row(i64 word_row) const {
  return words_.data() + (word_row - first_word_row_) * words_in_row_;
}

void PackedGrid::codes_of_row(i64 row, std::uint8_t* codes) const {
  const std::uint32_t mask = (1U << bits_) - 1;
  if (is_packed_in_rows_) {
    const i64 shift = shifts_[static_cast<size_t>(row % per_word_)];
    const std::uint32_t* const words = words_of_row(row / per_word_);
    for (i64 c = 0; c < columns_; ++c) {
      codes[c] = static_cast<std::uint8_t>(words[c] >> shift & mask);
    }
    return;
  }
  const std::uint32_t* word = words_of_row(row);
  for (i64 c = 0; c < columns_; ++word) {
    const std::uint32_t all = *word;
    for (i64 place = 0; place < per_word_ && c < columns_; ++place, ++c) {
      codes[c] = static_cast<std::uint8_t>(all >> shifts_[static_cast<size_t>(place)] & mask);
    }
  }
}

}  // namespace shardtool::engine

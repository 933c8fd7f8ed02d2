#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/engine/weights/weight_source.h"
#include "lib/model/packed_format.h"

namespace shardtool::engine {

/// Rows of small codes packed several to a word (a byte or 32 bits), along a row or down a column.
class PackedGrid {
 public:
  /// Reads the words with the codes of rows [rows.begin, rows.end), `columns` codes each.
  PackedGrid(const model::PackedWeight& weight, const WeightSource& stored, Dtype word,
             const StoredRows& rows, i64 columns, bool is_packed_in_rows);

  /// Unpacks the `columns` codes of a row.
  void codes_of_row(i64 row, std::uint8_t* codes) const;

 private:
  const std::uint32_t* words_of_row(i64 word_row) const;

  kernels::WordForm form_;
  i64 columns_;
  bool is_packed_in_rows_;
  i64 first_word_row_ = 0;
  i64 words_in_row_ = 0;
  std::vector<std::uint32_t> words_;
};

}  // namespace shardtool::engine

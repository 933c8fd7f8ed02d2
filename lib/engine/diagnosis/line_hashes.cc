#include "lib/engine/diagnosis/line_hashes.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_map>

#include "kernels/field/field.h"
#include "lib/engine/weights/row_chunks.h"

namespace shardtool::engine {
namespace {

/// Candidate limit: with more, the lines are all alike and the search is useless.
constexpr size_t kMostCandidates = 64;

using ReadRows = std::function<ByteRows(i64 begin, i64 end)>;

/// Adds the elements of rows to the hashes of their rows or columns.
void hash_rows(const ReadRows& read, i64 rows, i64 columns, i64 element, i64 read_columns,
               bool by_row, LineHashes& hashes) {
  hashes.assign(static_cast<size_t>(by_row ? rows : columns), 0);
  for (const auto [begin, end] : row_chunks(rows, read_columns * element)) {
    const ByteRows bytes = read(begin, end);
    const std::byte* at = bytes.data();
    for (i64 r = begin; r < end; ++r) {
      for (i64 c = 0; c < columns; ++c, at += element) {
        std::uint64_t value = 0;
        std::memcpy(&value, at, static_cast<size_t>(element));
        std::uint64_t& hash = hashes[static_cast<size_t>(by_row ? r : c)];
        hash = kernels::hashed(hash, value);
      }
    }
  }
}

LineHashes stored_hashes(const Side& shards, const StoredPart& part, i64 outer, bool by_row) {
  LineHashes hashes;
  const i64 columns = part.columns.local_size();
  hash_rows([&](i64 begin, i64 end) { return stored_rows(shards, part, outer, begin, end); },
            part.rows.local_size(), columns, part.element_bytes(), columns, by_row, hashes);
  return hashes;
}

LineHashes whole_hashes(const Side& whole, const WholeMatrix& matrix, bool by_row) {
  LineHashes hashes;
  const i64 element = bits(whole.tensors[matrix.tensor].dtype) / 8;
  hash_rows([&](i64 begin, i64 end) { return whole_rows(whole, matrix, begin, end); },
            matrix.rows.local_size(), matrix.columns.local_size(), element,
            matrix.columns.global_size(), by_row, hashes);
  return hashes;
}

/// Number of lines from `local` on that equal those of the table from `global` on.
i64 run_length(const LineHashes& found, i64 local, const LineHashes& table, i64 global) {
  i64 n = 0;
  while (local + n < std::ssize(found) && global + n < std::ssize(table) &&
         found[static_cast<size_t>(local + n)] == table[static_cast<size_t>(global + n)]) {
    ++n;
  }
  return n;
}

}  // namespace

LineHashes stored_row_hashes(const Side& shards, const StoredPart& part, i64 outer) {
  return stored_hashes(shards, part, outer, true);
}

LineHashes stored_column_hashes(const Side& shards, const StoredPart& part, i64 outer) {
  return stored_hashes(shards, part, outer, false);
}

LineHashes whole_row_hashes(const Side& whole, const WholeMatrix& matrix) {
  return whole_hashes(whole, matrix, true);
}

LineHashes whole_column_hashes(const Side& whole, const WholeMatrix& matrix) {
  return whole_hashes(whole, matrix, false);
}

std::uint64_t hash_of(const LineHashes& rows) {
  std::uint64_t hash = 0;
  for (const std::uint64_t row : rows) hash = kernels::hashed(hash, row);
  return hash;
}

std::vector<i64> held_lines(const LineHashes& found, const index::AxisMap& expected,
                            const LineHashes& table) {
  std::unordered_map<std::uint64_t, std::vector<i64>> where;
  for (i64 g = 0; g < std::ssize(table); ++g) {
    auto& places = where[table[static_cast<size_t>(g)]];
    if (places.size() < kMostCandidates) places.push_back(g);
  }
  std::vector<i64> held(found.size(), -1);
  for (i64 l = 0; l < std::ssize(found); ++l) {
    const auto own = expected(l);
    if (!own) continue;
    const std::uint64_t hash = found[static_cast<size_t>(l)];
    const i64 next = l > 0 ? held[static_cast<size_t>(l - 1)] + 1 : 0;
    const bool goes_on =
        next > 0 && next < std::ssize(table) && table[static_cast<size_t>(next)] == hash;
    if (table[static_cast<size_t>(*own)] == hash && !goes_on) {
      held[static_cast<size_t>(l)] = *own;
      continue;
    }
    const auto places = where.find(hash);
    if (places == where.end()) continue;
    const auto better = [&](i64 a, i64 b) {
      if (l > 0 && next > 0 && (a == next) != (b == next)) return b == next;
      return run_length(found, l, table, a) < run_length(found, l, table, b);
    };
    held[static_cast<size_t>(l)] =
        *std::max_element(places->second.begin(), places->second.end(), better);
  }
  return held;
}

}  // namespace shardtool::engine

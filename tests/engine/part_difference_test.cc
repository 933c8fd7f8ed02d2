// Parts of several MiB, read in several chunks, cut along either axis or both.
#include "lib/engine/diagnosis/part_difference.h"

#include <doctest/doctest.h>

#include <cstring>
#include <map>

#include "kernels/field/field.h"
#include "lib/engine/diagnosis/line_hashes.h"
#include "lib/layout/layout.h"

namespace shardtool::engine {
namespace {

constexpr i64 kRows = 1500;
constexpr i64 kColumns = 700;

/// Matrices of i32 numbers in memory, one per device.
class MemoryWeights final : public WeightSource {
 public:
  void read(const StoredRows& rows, std::span<std::byte> bytes) const override {
    const auto& [width, numbers] = matrices.at(rows.rank);
    REQUIRE(std::ssize(bytes) == (rows.end - rows.begin) * width * 4);
    std::memcpy(bytes.data(), numbers.data() + rows.begin * width, bytes.size());
  }
  std::map<i64, std::pair<i64, std::vector<std::int32_t>>> matrices;
};

std::int32_t number(i64 row, i64 column) {
  return static_cast<std::int32_t>(row * kColumns + column);
}

/// A matrix on one device, and the same cut over four by an expression per axis.
class Matrix {
 public:
  Matrix(const layout::AxisExpr& rows, const layout::AxisExpr& columns)
      : cut_(mesh::Mesh({{"a", 2}, {"b", 2}}), {kRows, kColumns},
             {{rows, 1, ""}, {columns, 1, ""}}),
        uncut_(layout::Layout::replicated(mesh::Mesh(), {kRows, kColumns})) {
    bind(whole_, uncut_, whole_weights_);
    bind(shards_, cut_, weights_);
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  const Side& whole() const { return whole_; }
  const Side& shards() const { return shards_; }
  StoredPart part(i64 rank) const { return *stored_part(whole_, shards_, 0, rank); }
  std::int32_t& stored(i64 rank, i64 row, i64 column) {
    auto& [width, numbers] = weights_.matrices.at(rank);
    return numbers[static_cast<size_t>(row * width + column)];
  }

 private:
  void bind(Side& side, const layout::Layout& layout, MemoryWeights& weights) {
    side.tensors = specs_;
    side.layouts = [&layout](size_t) -> const layout::Layout& { return layout; };
    side.weights = &weights;
    side.by_name["w"] = 0;
    for (const i64 rank : layout.ranks()) {
      const index::Region region = *layout.region(rank);
      auto& [width, numbers] = weights.matrices[rank];
      width = region[1].local_size();
      for (i64 r = 0; r < region[0].local_size(); ++r) {
        for (i64 c = 0; c < width; ++c) numbers.push_back(number(*region[0](r), *region[1](c)));
      }
    }
  }

  std::vector<TensorSpec> specs_{{"w", Dtype::kI32, {kRows, kColumns}}};
  layout::Layout cut_, uncut_;
  MemoryWeights whole_weights_, weights_;
  Side whole_, shards_;
};

const mesh::Over kA{{"a", 1, 0}};
const mesh::Over kB{{"b", 1, 0}};

/// Cuts of rows, of columns, of both, and in sections.
std::vector<std::pair<layout::AxisExpr, layout::AxisExpr>> cuts() {
  using layout::split, layout::whole, layout::repeat;
  return {{split(kRows, kA), whole(kColumns)},
          {whole(kRows), split(kColumns, kB)},
          {split(kRows, kA), split(kColumns, kB)},
          {repeat(3, split(kRows / 3, kA)), repeat(2, split(kColumns / 2, kB))}};
}

TEST_CASE("a part that is as it is to be has no difference") {
  for (const auto& [rows, columns] : cuts()) {
    const Matrix matrix(rows, columns);
    for (i64 rank = 0; rank < 4; ++rank) {
      CHECK_FALSE(part_difference(matrix.whole(), matrix.shards(), matrix.part(rank)).has_value());
    }
  }
}

TEST_CASE("one number that differs is found with its place, in whatever chunk it is") {
  for (const auto& [rows, columns] : cuts()) {
    Matrix matrix(rows, columns);
    const StoredPart part = matrix.part(3);
    for (std::uint64_t i = 0; i < 40; ++i) {
      const auto row = static_cast<i64>(kernels::hashed(1, i) %
                                        static_cast<std::uint64_t>(part.rows.local_size()));
      const auto column = static_cast<i64>(kernels::hashed(2, i) %
                                           static_cast<std::uint64_t>(part.columns.local_size()));
      const std::int32_t was = matrix.stored(3, row, column);
      matrix.stored(3, row, column) = -7;
      const auto found = part_difference(matrix.whole(), matrix.shards(), part);
      REQUIRE(found.has_value());
      CHECK(found->differing == 1);
      CHECK(found->first_row == row);
      CHECK(found->first_column == column);
      CHECK(found->expected ==
            static_cast<std::uint64_t>(number(*part.rows(row), *part.columns(column))));
      matrix.stored(3, row, column) = was;
    }
  }
}

TEST_CASE("lines are found by what they hold, in whatever chunk they are") {
  for (const auto& [rows, columns] : cuts()) {
    Matrix matrix(rows, columns);
    const StoredPart part = matrix.part(2);
    const i64 last = part.rows.local_size() - 1;
    for (i64 c = 0; c < part.columns.local_size(); ++c) {
      std::swap(matrix.stored(2, 0, c), matrix.stored(2, last, c));
    }
    auto all = *expected_matrix(part, 0);
    all.rows = index::AxisMap::identity(kRows);
    const auto held = held_lines(stored_row_hashes(matrix.shards(), part, 0), part.rows,
                                 whole_row_hashes(matrix.whole(), all));
    CHECK(held.front() == part.rows(last));
    CHECK(held.back() == part.rows(0));
    for (i64 r = 1; r < last; ++r) CHECK(held[static_cast<size_t>(r)] == part.rows(r));
  }
}

TEST_CASE("a run of equal lines goes on where it began") {
  // A vector of few values, shifted by one: many lines are found in many places.
  LineHashes table;
  for (std::uint64_t i = 0; i < 64; ++i) table.push_back(kernels::hashed(3, i) % 4);
  const LineHashes found(table.begin() + 1, table.begin() + 33);
  const index::AxisMap expected = index::AxisMap::slice(64, {0, 32});
  const std::vector<i64> held = held_lines(found, expected, table);
  i64 shifted = 0;
  for (i64 l = 0; l < 32; ++l) shifted += held[static_cast<size_t>(l)] == l + 1 ? 1 : 0;
  CHECK(shifted >= 28);
}

}  // namespace
}  // namespace shardtool::engine

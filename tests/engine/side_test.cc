#include "lib/engine/side.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "lib/layout/layout.h"

namespace shardtool::engine {
namespace {

constexpr i64 kBiasExperts = 6;
constexpr i64 kBiasColumns = 8;

/// Bytes of a tensor of kU8, each of them unlike its neighbours, and the bytes that were read.
class CountedWeights final : public WeightSource {
 public:
  void read(const StoredRows& rows, std::span<std::byte> bytes) const override {
    const i64 width = std::ssize(bytes) / (rows.end - rows.begin);
    for (i64 i = 0; i < std::ssize(bytes); ++i) {
      const i64 place = rows.rank * kBiasExperts * kBiasColumns + rows.begin * width + i;
      bytes[static_cast<size_t>(i)] = static_cast<std::byte>(place);
    }
    bytes_read += std::ssize(bytes);
  }
  mutable i64 bytes_read = 0;
};

TEST_CASE("a row of a part has the bytes that it has among all rows, and no others are read") {
  using layout::split, layout::whole, layout::AxisExpr;
  const mesh::Over over{{"a", 1, 0}};
  const std::vector<std::pair<AxisExpr, AxisExpr>> cuts{
      {whole(kBiasExperts), whole(kBiasColumns)},
      {split(kBiasExperts, over), whole(kBiasColumns)},
      {whole(kBiasExperts), split(kBiasColumns, over)},
      {whole(kBiasExperts), layout::repeat(2, split(kBiasColumns / 2, over))}};
  const std::vector<TensorSpec> specs{{"bias", Dtype::kU8, {kBiasExperts, kBiasColumns}}};
  for (const auto& [rows, columns] : cuts) {
    const layout::Layout cut(mesh::Mesh({{"a", 2}}), {kBiasExperts, kBiasColumns},
                             {{rows, 1, ""}, {columns, 1, ""}});
    const CountedWeights weights;
    Side side;
    side.tensors = specs;
    side.layouts = [&cut](size_t) -> const layout::Layout& { return cut; };
    side.weights = &weights;
    for (const i64 rank : cut.ranks()) {
      const ops::StoredWeight all = side.read(0, rank);
      const i64 width = all.region[1].local_size();
      for (i64 row = 0; row < all.region[0].local_size(); ++row) {
        weights.bytes_read = 0;
        const ops::StoredWeight one = side.read_row(0, rank, row);
        CHECK(weights.bytes_read == width);
        CHECK(one.region == index::Region{all.region[1]});
        CHECK(std::equal(one.bytes.begin(), one.bytes.end(), all.bytes.begin() + row * width));
      }
    }
  }
}

}  // namespace
}  // namespace shardtool::engine

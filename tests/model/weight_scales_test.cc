#include "lib/model/weight_scales.h"

#include <doctest/doctest.h>

namespace shardtool::model {

TEST_CASE("scales fit a matrix if they are one per block of config.json, and in no other number") {
  const auto config = mapping::parse_config(
      R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [4, 8]}})",
      "config.json");
  for (const size_t axis : {size_t{0}, size_t{1}}) {
    const i64 block = axis == 0 ? 4 : 8;
    for (i64 extent = 1; extent <= 40; ++extent) {
      for (i64 scales = 1; scales <= extent; ++scales) {
        CAPTURE(extent);
        CAPTURE(scales);
        const auto found = scale_block(config, extent, scales, axis);
        CHECK(found.has_value() == (scales == ceil_div(extent, block)));
        for (i64 i = 0; found && i < extent; ++i) CHECK(i / *found == i / block);
      }
    }
  }
}

TEST_CASE("without blocks in config.json scales are one for all, one each, or of equal blocks") {
  const auto config =
      mapping::parse_config(R"({"quantization_config": {"quant_method": "fp8"}})", "config.json");
  CHECK(scale_block(config, 12, 1, 0) == 12);
  CHECK(scale_block(config, 12, 12, 0) == 1);
  CHECK(scale_block(config, 12, 3, 1) == 4);
  CHECK_FALSE(scale_block(config, 12, 0, 0));
  CHECK_FALSE(scale_block(config, 12, 13, 0));
}

}  // namespace shardtool::model

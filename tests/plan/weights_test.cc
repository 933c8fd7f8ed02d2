#include "lib/plan/weights.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "tests/plan/one_axis.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

using namespace shardtool;
using plan::cut;
using plan::device_weights;
using plan::DeviceWeights;
using plan::holders_of;
using plan::WeightGroup;

namespace {

DeviceWeights sum_of(const std::vector<DeviceWeights>& devices) {
  DeviceWeights sum;
  for (const DeviceWeights& device : devices) {
    sum.bytes += device.bytes;
    sum.replicated_bytes += device.replicated_bytes;
    sum.padding_bytes += device.padding_bytes;
  }
  return sum;
}

TEST_CASE("bytes of all devices, without copies and padding, are those of the tensors") {
  CHECK(rc::check("device_weights", [] {
    std::vector<layout::Layout> layouts;
    const i64 kinds = *gen::between(1, 3);
    for (i64 k = 0; k < kinds; ++k) layouts.push_back(*gen::layout(*gen::shape()));
    std::vector<WeightGroup> groups;
    i64 tensor_bytes = 0;
    i64 devices = 1;
    for (size_t k = 0; k < layouts.size(); ++k) {
      const int bits = *rc::gen::element(8, 16, 32);
      const i64 tensors = *gen::between(1, 3);
      groups.push_back({static_cast<int>(k % 2), bits, holders_of(layouts[k]), tensors});
      tensor_bytes += element_count(layouts[k].shape()).value() * bits / 8 * tensors;
      devices = std::max(devices, layouts[k].mesh().size());
    }
    const auto got = device_weights(devices, 2, groups);
    const DeviceWeights sum = sum_of(got);
    RC_ASSERT(sum.bytes - sum.replicated_bytes - sum.padding_bytes == tensor_bytes);
    for (const DeviceWeights& device : got) {
      RC_ASSERT(device.by_class[0] + device.by_class[1] == device.bytes);
      RC_ASSERT(device.replicated_bytes + device.padding_bytes <= device.bytes);
    }
    // The first device with data has no copies.
    const auto first =
        std::find_if(got.begin(), got.end(), [](const auto& device) { return device.bytes > 0; });
    if (first != got.end()) RC_ASSERT(first->replicated_bytes == 0);
  }));
}

/// Rows over X and Y of the mesh (X 2, Y 8, Z 2), or over X of (X 4, Y 8, Z 2).
layout::Layout over(const Shape& shape, i64 x, mesh::Over axes) {
  return layout::Layout(
      mesh::Mesh({{"X", x}, {"Y", 8}, {"Z", 2}}), shape,
      {{layout::split(shape[0], std::move(axes)), 1, {}}, {layout::whole(shape[1]), 1, {}}});
}

// "How to scale your model", chapter on sharding: the pop quiz.
TEST_CASE("int8 128 x 2048 with rows over X and Y of X2 Y8 Z2: 16,384 bytes a device (D2)") {
  const layout::Layout layout = over({128, 2048}, 2, {{"X"}, {"Y"}});
  const auto got = device_weights(32, 1, std::vector<WeightGroup>{{0, 8, holders_of(layout)}});
  for (const DeviceWeights& device : got) CHECK(device.bytes == 16'384);
  CHECK(sum_of(got).bytes == 524'288);
}

// The same chapter, question 1.
TEST_CASE("cut over X alone of X4 Y8 Z2, the devices hold 16 copies (D3)") {
  const layout::Layout layout = over({4, 2}, 4, {{"X"}});
  const auto got = device_weights(64, 1, std::vector<WeightGroup>{{0, 8, holders_of(layout)}});
  const DeviceWeights sum = sum_of(got);
  CHECK(sum.bytes == 16 * 8);
  CHECK(sum.replicated_bytes == 15 * 8);
}

TEST_CASE("a sum beyond 64 bits is told") {
  const layout::Layout layout = cut({i64{1} << 40}, 1);
  CHECK_ERROR(
      kLimit,
      device_weights(1, 1, std::vector<WeightGroup>{{0, 32, holders_of(layout), i64{1} << 40}}));
}

}  // namespace

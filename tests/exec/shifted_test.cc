#include "lib/exec/shifted.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::exec {
namespace {

constexpr i64 kLeast = std::numeric_limits<i64>::min();
constexpr i64 kLargest = std::numeric_limits<i64>::max();

/// The logical value of a stored one with this addend.
template <class Integer>
i64 restored(Dtype dtype, Integer stored, i64 addend) {
  std::vector<std::byte> bytes(sizeof stored);
  std::memcpy(bytes.data(), &stored, sizeof stored);
  restore_values("g_idx", dtype, {.addends = {addend}}, 0, bytes);
  Integer value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

TEST_CASE("a shift that takes an integer out of its dtype is an error, not another value") {
  CHECK(restored<std::int64_t>(Dtype::kI64, -2, 5) == -7);
  CHECK(restored<std::int64_t>(Dtype::kI64, kLargest - 3, -3) == kLargest);
  CHECK(restored<std::int32_t>(Dtype::kI32, 7, 5) == 2);
  CHECK_ERROR(kDataMismatch, restored<std::int64_t>(Dtype::kI64, kLargest, -1));
  CHECK_ERROR(kDataMismatch, restored<std::int64_t>(Dtype::kI64, -2, kLargest));
  CHECK_ERROR(kDataMismatch, restored<std::int64_t>(Dtype::kI64, 0, kLeast));
  CHECK_ERROR(kDataMismatch, restored<std::int32_t>(Dtype::kI32, 0, i64{1} << 31 << 1));
}

TEST_CASE("files whose shifts overflow are refused with the tensor") {
  const test::TempFolder folder;
  const std::int64_t stored = kLargest;
  const std::string path =
      folder.write("file", std::string_view(reinterpret_cast<const char*>(&stored), sizeof stored));
  std::vector<SourceFile> files;
  files.emplace_back(path);
  const auto whole = std::make_shared<index::HolderSet>(index::HolderSet::whole({1}));
  const auto load = [&](i64 addend) {
    const std::vector<index::ValueShift> shifts{{.addends = {addend}}};
    return load_shifted("g_idx", Dtype::kI64, {1}, {whole, {{0, 0}}}, shifts, files);
  };
  CHECK(load(3) == std::vector<i64>{kLargest - 3});
  const auto error = testing::error_of([&] { return load(-3); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kDataMismatch);
  CHECK(error->tensor_name() == "g_idx");
}

}  // namespace
}  // namespace shardtool::exec

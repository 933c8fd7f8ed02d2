#include "lib/mapping/document/dims.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <map>

#include "tests/mapping/fixtures.h"

namespace shardtool::mapping {
namespace {

const std::map<std::string, i64> kDeclared = {{"heads", 32}, {"kv", 8}, {"d", 128}};

std::optional<i64> declared(const std::string& axis) {
  const auto found = kDeclared.find(axis);
  return found == kDeclared.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::pair<std::string, i64>> infer(const std::string& dim, i64 extent) {
  return infer_size(parse_dim(dim), declared, extent);
}

TEST_CASE("the size that is inferred makes the sections add up to the extent") {
  CHECK(rc::check("n of a*n + b + n*c", [] {
    const auto n = [] { return *rc::gen::inRange<i64>(1, 100); };
    const i64 a = n(), b = n(), c = n(), x = n();
    const auto dim = std::to_string(a) + "*x + " + std::to_string(b) + " + x*" + std::to_string(c);
    RC_ASSERT(infer(dim, a * x + b + x * c) == std::pair(std::string("x"), x));
  }));
}

TEST_CASE("dims whose sizes are all declared add up, or are refused with both numbers") {
  CHECK(infer("heads*d", 4096) == std::nullopt);
  CHECK(infer("heads*d + kv*d + kv*d", 6144) == std::nullopt);
  const auto e = error_of([] { return infer("heads*d", 4000); });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kShapeMismatch);
  CHECK(e->message() == "'heads*d' is 32*128 = 4096, but the tensor has 4000 elements there");
}

TEST_CASE("equal sections share one inferred size, an extent that fits none is refused") {
  CHECK(infer("mlp + mlp", 28672) == std::pair(std::string("mlp"), i64{14336}));
  CHECK_ERROR(kShapeMismatch, infer("mlp + mlp", 28673));
  CHECK_ERROR(kShapeMismatch, infer("x*d", 100));
  CHECK_ERROR(kShapeMismatch, infer("x + heads", 31));
}

TEST_CASE("two sizes cannot be inferred from one extent") {
  CHECK_ERROR(kShapeMismatch, infer("x + y", 10));
  CHECK_ERROR(kShapeMismatch, infer("x*y", 10));
  CHECK_ERROR(kShapeMismatch, infer("x*x", 9));
}

TEST_CASE("an extent of nothing infers a size of nothing") {
  CHECK(infer("mlp", 0) == std::pair(std::string("mlp"), i64{0}));
}

TEST_CASE("sizes above 2^63 are refused") {
  CHECK_ERROR(kShapeMismatch, infer("4611686018427387904*4", 16));
  CHECK_ERROR(kShapeMismatch, infer("9223372036854775807 + 9223372036854775807", 16));
}

}  // namespace
}  // namespace shardtool::mapping

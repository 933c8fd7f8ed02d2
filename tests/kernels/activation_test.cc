#include "kernels/ops/activation.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/golden/tables.h"

using namespace shardtool;
using golden::function_tables;
using kernels::activate;
using kernels::ActivationKind;
using kernels::parse_activation;

namespace {

template <class T>
std::vector<double> activated(ActivationKind kind, const std::vector<double>& x) {
  std::vector<double> y;
  for (const double value : x) {
    y.push_back(static_cast<double>(activate(kind, static_cast<T>(value))));
  }
  return y;
}

template <class T>
std::vector<double> glued(const golden::PairTable& table) {
  std::vector<double> out;
  for (size_t i = 0; i < table.gate.size(); ++i) {
    const auto value =
        kernels::gpt_oss_glu(static_cast<T>(table.gate[i]), static_cast<T>(table.up[i]));
    out.push_back(static_cast<double>(value));
  }
  return out;
}

}  // namespace

TEST_CASE("every activation of the library is what it computes, in f32 and in f64") {
  const auto& table = function_tables().activations;
  CHECK(table.y.size() == 21);
  for (const auto& [name, y] : table.y) {
    CAPTURE(name);
    const auto kind = parse_activation(name);
    REQUIRE(kind);
    CHECK(golden::distance(activated<float>(*kind, table.x), y) < 1e-6);
    CHECK(golden::distance(activated<double>(*kind, table.x), y) < 1e-6);
  }
}

TEST_CASE("gpt-oss' pairs are what the library computes, clamped at 7 on the right sides") {
  const auto& table = function_tables().gpt_oss_glu;
  CHECK(golden::distance(glued<float>(table), table.out) < 1e-6);
  CHECK(golden::distance(glued<double>(table), table.out) < 1e-6);
  CHECK(kernels::gpt_oss_glu(8.0, 1.0) == kernels::gpt_oss_glu(7.0, 1.0));
  CHECK(kernels::gpt_oss_glu(-8.0, 1.0) != kernels::gpt_oss_glu(-7.0, 1.0));
  CHECK(kernels::gpt_oss_glu(1.0, -8.0) == kernels::gpt_oss_glu(1.0, -7.0));
  CHECK(kernels::gpt_oss_glu(1.0, 8.0) == kernels::gpt_oss_glu(1.0, 7.0));
}

TEST_CASE("names that are no activation of one value are not parsed") {
  for (const char* name : {"", "prelu", "xielu", "gpt_oss_glu", "SiLU", "geluu"}) {
    CHECK_FALSE(parse_activation(name));
  }
}

TEST_CASE("far out every activation has its limit, and NaN stays NaN") {
  for (int k = 0; k <= static_cast<int>(ActivationKind::kTanh); ++k) {
    const auto kind = static_cast<ActivationKind>(k);
    CAPTURE(k);
    CHECK(std::isnan(activate(kind, std::numeric_limits<float>::quiet_NaN())));
    CHECK(std::isfinite(activate(kind, 1e4F)));
    CHECK(std::isfinite(activate(kind, -1e4F)));
    CHECK(activate(kind, 1e4F) >= activate(kind, 3.0F));
  }
  CHECK(activate(ActivationKind::kSilu, -1e4F) == 0);
  CHECK(activate(ActivationKind::kGelu10, 1e4F) == 10);
}

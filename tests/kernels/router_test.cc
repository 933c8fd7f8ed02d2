#include "kernels/ops/router.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tests/golden/tables.h"

using namespace shardtool;
using kernels::RouterSpec;
using Kind = RouterSpec::Kind;

namespace {

template <class T>
struct Routed {
  std::vector<i64> chosen;
  std::vector<T> gates;
  T gap{};
};

template <class T>
Routed<T> routed(const RouterSpec& spec, const std::vector<T>& scores,
                 const std::vector<T>& correction = {}) {
  Routed<T> out{std::vector<i64>(spec.top_k), std::vector<T>(spec.experts), T(0)};
  out.gap = kernels::route(spec, scores.data(), correction.empty() ? nullptr : correction.data(),
                           out.gates.data(), out.chosen.data());
  return out;
}

RouterSpec spec_of(const golden::RouterTable& table) {
  const std::map<std::string, Kind> kinds{
      {"softmax_topk", Kind::kSoftmaxTopK},     {"topk_softmax", Kind::kTopKSoftmax},
      {"topk_sigmoid", Kind::kTopKSigmoid},     {"group_max", Kind::kGroupMax},
      {"sigmoid_groups", Kind::kSigmoidGroups}, {"corrected_softmax", Kind::kCorrectedSoftmax},
      {"sparse_mixer", Kind::kSparseMixer},     {"corrected_sigmoid", Kind::kCorrectedSigmoid},
      {"root_softplus", Kind::kRootSoftplus}};
  return {kinds.at(table.kind), table.experts,    table.top_k,     table.renormalise, table.scale,
          table.groups,         table.top_groups, table.least_sum, table.jitter};
}

template <class T>
std::vector<T> row_of(const std::vector<double>& rows, i64 row, i64 width) {
  return {rows.begin() + row * width, rows.begin() + (row + 1) * width};
}

template <class T>
void check_table(const golden::RouterTable& table) {
  const RouterSpec spec = spec_of(table);
  const std::vector<T> correction(table.correction.begin(), table.correction.end());
  const i64 rows = static_cast<i64>(table.scores.size()) / table.experts;
  REQUIRE(rows > 0);
  std::vector<i64> chosen;
  std::vector<double> gates;
  for (i64 row = 0; row < rows; ++row) {
    auto out = routed(spec, row_of<T>(table.scores, row, table.experts), correction);
    std::sort(out.chosen.begin(), out.chosen.end());
    chosen.insert(chosen.end(), out.chosen.begin(), out.chosen.end());
    gates.insert(gates.end(), out.gates.begin(), out.gates.end());
  }
  CHECK(chosen == table.chosen);
  CHECK(golden::distance(gates, table.gates) < 1e-6);
}

/// A random router that satisfies R1 and R2.
rc::Gen<RouterSpec> any_spec() {
  return rc::gen::exec([] {
    RouterSpec spec;
    spec.kind = static_cast<Kind>(*rc::gen::inRange(0, 7));
    const bool may_group = spec.kind == Kind::kGroupMax || spec.kind == Kind::kSigmoidGroups;
    spec.groups = may_group ? *rc::gen::inRange<i64>(0, 5) : 0;
    spec.top_groups = *rc::gen::inRange<i64>(0, spec.groups + 1);
    const i64 group_size = *rc::gen::inRange<i64>(1, 5);
    spec.experts = std::max<i64>(spec.groups, 1) * group_size;
    const i64 allowed = spec.cuts_groups() ? spec.top_groups * group_size : spec.experts;
    spec.top_k = *rc::gen::inRange<i64>(1, allowed + 1);
    spec.renormalise = *rc::gen::arbitrary<bool>();
    spec.scale = *rc::gen::element(1.0, 2.5);
    spec.jitter = *rc::gen::element(0.0, 0.1, 0.3);
    return spec;
  });
}

/// Random scores with few distinct values, so that there are ties.
std::vector<double> any_scores(i64 count) {
  return *rc::gen::container<std::vector<double>>(
      count, rc::gen::map(rc::gen::inRange(-6, 7), [](int i) { return i * 0.5; }));
}

}  // namespace

TEST_CASE("every router of the library is what it computes, in f32 and in f64") {
  CHECK(golden::function_tables().routers.size() == 15);
  for (const auto& table : golden::function_tables().routers) {
    CAPTURE(table.kind);
    CAPTURE(table.groups);
    check_table<float>(table);
    check_table<double>(table);
  }
}

TEST_CASE("of equal scores the expert, and the group, with the lower number is chosen") {
  const auto top = [](RouterSpec spec, const std::vector<double>& scores) {
    return routed(spec, scores).chosen;
  };
  CHECK(top({Kind::kSoftmaxTopK, 4, 2}, {1, 3, 3, 3}) == std::vector<i64>{1, 2});
  CHECK(top({Kind::kTopKSoftmax, 3, 3}, {0, 0, 0}) == std::vector<i64>{0, 1, 2});
  CHECK(top({Kind::kGroupMax, 6, 2, false, 1, 3, 1}, {1, 0, 2, 0, 0, 2}) == std::vector<i64>{2, 3});
}

TEST_CASE("the gap is that of the choice that is nearest to another one") {
  const RouterSpec plain{Kind::kTopKSoftmax, 4, 2};
  CHECK(routed<double>(plain, {5, 1, 4, 2}).gap == doctest::Approx(2));
  // Within the chosen group 5 is far above 0, but another group's best is only 0.5 lower.
  const RouterSpec grouped{Kind::kGroupMax, 4, 1, false, 1, 2, 1};
  CHECK(routed<double>(grouped, {5, 0, 4.5, 1}).gap == doctest::Approx(0.5));
  const RouterSpec all{Kind::kSoftmaxTopK, 2, 2};
  CHECK(std::isinf(routed<double>(all, {1, 2}).gap));
}

TEST_CASE("a mixer's weights are softmaxes over what is near and not chosen before") {
  const RouterSpec mixer{Kind::kSparseMixer, 4, 2, false, 1, 0, 0, 0, 0.1};
  // Near 5 are 5 and 4.5, of which 4.5 differs by a tenth; near 4.5 is 4.5 alone.
  const auto two = routed<double>(mixer, {5, 4.5, 3, -9});
  CHECK(two.gates[0] == doctest::Approx(1 / (1 + std::exp(-0.5))));
  CHECK(two.gates[1] == 1);
  CHECK(two.gap == doctest::Approx(0.1));  // with 2 jitter of 0.1, 4.5 would no longer be near 5
  const auto ordered = routed<double>(mixer, {5, 4.999, 3, -9});
  CHECK(ordered.gap == doctest::Approx(0.001));  // the order counts
  CHECK(routed<double>(mixer, {0, 0, 0, 0}).gates == std::vector<double>{0.25, 1.0 / 3, 0, 0});
}

TEST_CASE("a negative rank of a chosen group comes before every other group's") {
  const RouterSpec spec{Kind::kSigmoidGroups, 4, 2, false, 1, 2, 1};
  const auto out = routed<double>(spec, {9, -9, 0, 0}, {0, -1, -0.3, -0.3});
  CHECK(out.chosen == std::vector<i64>{2, 3});
  const auto other = routed<double>(spec, {9, -9, 0, 0}, {1, -1, -0.6, -0.6});
  CHECK(other.chosen == std::vector<i64>{0, 1});
}

TEST_CASE("law: chosen experts are different, lie in the best groups and are before all others") {
  rc::check([] {
    const RouterSpec spec = *any_spec();
    const auto scores = any_scores(spec.experts);
    const auto correction = any_scores(spec.experts);
    std::vector<double> ranks(spec.experts);
    rank_experts(spec, scores.data(), correction.data(), ranks.data());
    const auto out = routed(spec, scores, correction);
    std::vector<i64> sorted(spec.experts);
    std::iota(sorted.begin(), sorted.end(), 0);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](i64 a, i64 b) { return ranks[a] > ranks[b]; });
    sorted.resize(spec.top_k);
    RC_ASSERT(out.chosen == sorted);
    std::vector<i64> groups;
    for (const i64 e : out.chosen)
      groups.push_back(spec.groups > 0 ? e * spec.groups / spec.experts : 0);
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    if (spec.cuts_groups()) RC_ASSERT(static_cast<i64>(groups.size()) <= spec.top_groups);
    RC_ASSERT(out.gap >= 0);
  });
}

TEST_CASE(
    "law: the weights are positive where chosen and zero elsewhere; renormalised they add up to "
    "the scale") {
  rc::check([] {
    const RouterSpec spec = *any_spec();
    const auto scores = any_scores(spec.experts);
    const auto out = routed(spec, scores);
    double sum = 0;
    for (i64 e = 0; e < spec.experts; ++e) {
      const bool is_chosen = std::find(out.chosen.begin(), out.chosen.end(), e) != out.chosen.end();
      RC_ASSERT((out.gates[e] > 0) == is_chosen);
      sum += out.gates[e];
    }
    const bool is_softmax = !spec.is_by_itself() && spec.kind != Kind::kSparseMixer;
    const bool is_whole = spec.renormalise || spec.kind == Kind::kTopKSoftmax ||
                          (is_softmax && spec.top_k == spec.experts);
    if (is_whole) RC_ASSERT(std::abs(sum - spec.scale) < 1e-12);
  });
}

TEST_CASE("law: the weights of a given choice are those of the router that chose it") {
  rc::check([] {
    const RouterSpec spec = *any_spec();
    const auto scores = any_scores(spec.experts);
    auto out = routed(spec, scores);
    std::vector<double> gates(spec.experts, -1);
    kernels::gates_of_choice(spec, scores.data(), out.chosen.data(), gates.data());
    RC_ASSERT(gates == out.gates);
  });
}

TEST_CASE(
    "roots of softplus rank with a correction and weigh without, and twice chosen counts twice") {
  RouterSpec spec;
  spec.kind = Kind::kRootSoftplus;
  spec.experts = 3;
  spec.top_k = 2;
  spec.renormalise = true;
  spec.scale = 2;
  const auto inverse = [](double root) { return std::log(std::expm1(root * root)); };
  const std::vector<double> scores{inverse(1), inverse(2), inverse(3)}, correction{5, 0, 0};
  std::vector<double> gates(3);
  std::vector<i64> chosen(2);
  kernels::route(spec, scores.data(), correction.data(), gates.data(), chosen.data());
  CHECK(chosen == std::vector<i64>{0, 2});
  CHECK(gates[0] == doctest::Approx(2 * 1.0 / 4));
  CHECK(gates[1] == 0);
  CHECK(gates[2] == doctest::Approx(2 * 3.0 / 4));
  const std::vector<i64> twice{1, 1};
  kernels::gates_of_choice(spec, scores.data(), twice.data(), gates.data());
  CHECK(gates[1] == doctest::Approx(2));
  CHECK(gates[0] == 0);
}

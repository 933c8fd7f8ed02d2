#include "lib/layout/head_groups.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "tests/support/generators.h"
#include "tests/support/held.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::testing;
using layout::cut_heads;
using layout::cut_units;
using layout::HeadCounts;
using layout::HeadCut;
using layout::kBalanced;
using layout::kExact;
using layout::SmallPolicy;

namespace {

struct Cut {
  Held queries, kv;
  bool operator==(const Cut&) const = default;
};

Cut cut(HeadCounts counts, i64 devices, SmallPolicy small = SmallPolicy::kReplicate) {
  const HeadCut both = cut_heads(counts, tp(devices), kTp, kBalanced, small);
  return {held(both.queries, tp(devices)), held(both.kv, tp(devices))};
}

}  // namespace

TEST_CASE("every query head is on a device with the KV head that it attends to") {
  CHECK(rc::check("whole groups, replication and gathering", [] {
    const i64 kv = *gen::between(1, 12);
    const i64 group = *gen::between(1, 12);
    const i64 devices = *gen::between(1, 32);
    const auto small = *rc::gen::element(SmallPolicy::kReplicate, SmallPolicy::kGather);
    std::optional<HeadCut> both;
    const auto refused = error_of([&] {
      both = cut_heads({kv * group, kv}, tp(devices), kTp, kBalanced, small);
      return 0;
    });
    const bool works = devices <= kv || small == SmallPolicy::kGather ||
                       (devices % kv == 0 && kv * group % devices == 0);
    RC_CLASSIFY(works, "works");
    RC_ASSERT(both.has_value() == works);
    if (!both) {
      RC_ASSERT(refused->code() == ErrorCode::kGroups);
      return;
    }
    for (i64 rank = 0; rank < devices; ++rank) {
      const auto have = reference::indices(evaluate(both->kv, tp(devices), rank));
      std::vector<i64> needed;
      for (const i64 head : reference::indices(evaluate(both->queries, tp(devices), rank))) {
        if (needed.empty() || needed.back() != head / group) needed.push_back(head / group);
      }
      RC_ASSERT(have == needed);
    }
  }));
}

TEST_CASE("up to as many devices as KV heads, whole groups are dealt out") {
  CHECK(cut({32, 8}, 4) == Cut{{"[0, 8)", "[8, 16)", "[16, 24)", "[24, 32)"},
                               {"[0, 2)", "[2, 4)", "[4, 6)", "[6, 8)"}});
  CHECK(cut({28, 4}, 3) ==
        Cut{{"[0, 14)", "[14, 21)", "[21, 28)"}, {"[0, 2)", "[2, 3)", "[3, 4)"}});
  CHECK(cut({40, 8}, 3) ==
        Cut{{"[0, 15)", "[15, 30)", "[30, 40)"}, {"[0, 3)", "[3, 6)", "[6, 8)"}});
}

TEST_CASE("on a multiple of the KV heads each is replicated on a run of devices") {
  const Cut both = cut({32, 4}, 8);
  CHECK(both.queries[7] == "[28, 32)");
  CHECK(both.kv ==
        Held{"[0, 1)", "[0, 1)", "[1, 2)", "[1, 2)", "[2, 3)", "[2, 3)", "[3, 4)", "[3, 4)"});
}

TEST_CASE("10 queries and 2 KV heads over 4 devices are refused, or gathered on request") {
  const auto refused = error_of([] { return cut({10, 2}, 4); });
  REQUIRE(refused);
  CHECK(refused->code() == ErrorCode::kGroups);
  CHECK(refused->help_lines().front() == "device counts that work: 1 2 10");
  const auto strict = error_of([] { return cut({10, 2}, 4, SmallPolicy::kError); });
  REQUIRE(strict);
  CHECK(strict->help_lines().front() ==
        "device counts that work: 1 2 10 (above 2 with \"small\": \"replicate\")");
  CHECK(cut({10, 2}, 4, SmallPolicy::kGather) ==
        Cut{{"[0, 3)", "[3, 6)", "[6, 8)", "[8, 10)"}, {"[0, 1)", "[0, 2)", "[1, 2)", "[1, 2)"}});
}

TEST_CASE("device counts that are advised work by the rule in use") {
  CHECK(rc::check("advice", [] {
    const i64 kv = *gen::between(1, 12), heads = kv * *gen::between(1, 6);
    const layout::SplitRule rule =
        *rc::gen::element(layout::kBalanced, layout::kMiddle, layout::kCeil, kExact);
    layout::HeadCounts counts{heads, kv};
    counts.must_divide = *gen::between(0, 1) == 1;
    const auto cut_over = [&](i64 devices) {
      return cut_heads(counts, tp(devices), kTp, rule, SmallPolicy::kReplicate);
    };
    const auto error = error_of([&] { cut_over(kv + *gen::between(1, 12)); });
    if (!error) return;
    const std::string help = error->help_lines().front();
    std::istringstream words(help.substr(help.find(": ") + 2));
    i64 advised = 0;
    for (i64 devices = 0; words >> devices; ++advised) {
      const auto made = cut_over(devices);
      for (i64 rank = 0; rank < devices; ++rank) {
        const i64 held = evaluate(made.queries, tp(devices), rank).local_size();
        RC_ASSERT(held > 0);
        if (counts.must_divide) RC_ASSERT(held == heads / devices);
      }
    }
    RC_ASSERT(advised > 0);
  }));
}

TEST_CASE("fewer KV heads than devices are an error unless a policy says what to do") {
  CHECK_ERROR(kGroups, cut({32, 4}, 8, SmallPolicy::kError));
  CHECK_ERROR(kGroups, cut({32, 4}, 6));
  CHECK_ERROR(kGroups, cut({32, 5}, 2));
  CHECK_ERROR(kGroups, cut({32, 0}, 2));
  CHECK_ERROR(kNotDivisible,
              evaluate(cut_heads({32, 8}, tp(3), kTp, kExact, SmallPolicy::kError).kv, tp(3), 0));
}

TEST_CASE("units are on runs of devices also where no leading part of the mesh axes has as many") {
  const mesh::Mesh mesh({{"ep", 2}, {"tp", 3}});
  const std::vector<mesh::AxisRef> both{{"ep"}, {"tp"}};
  const HeadCut heads = cut_heads({12, 3}, mesh, both, kBalanced, SmallPolicy::kReplicate);
  const Held of_runs{"[0, 1)", "[0, 1)", "[1, 2)", "[1, 2)", "[2, 3)", "[2, 3)"};
  CHECK(held(heads.kv, mesh) == of_runs);
  CHECK(held(heads.queries, mesh) ==
        Held{"[0, 2)", "[2, 4)", "[4, 6)", "[6, 8)", "[8, 10)", "[10, 12)"});
  CHECK(held(cut_units(3, mesh, both, kBalanced, SmallPolicy::kReplicate), mesh) == of_runs);
}

TEST_CASE("an error about very many heads lists as many counts as a message can take") {
  const auto refused = error_of([] { return cut({i64{1} << 40, 1}, 3, SmallPolicy::kError); });
  REQUIRE(refused);
  CHECK(refused->help_lines().front().size() < 200);
}

TEST_CASE("a few units are replicated over the leading part, or cut as they are") {
  const auto units = [](i64 n, i64 devices, SmallPolicy small) {
    return held(cut_units(n, tp(devices), kTp, kBalanced, small), tp(devices));
  };
  CHECK(units(2, 4, SmallPolicy::kReplicate) == Held{"[0, 1)", "[0, 1)", "[1, 2)", "[1, 2)"});
  CHECK(units(1, 2, SmallPolicy::kReplicate) == Held{"[0, 1)", "[0, 1)"});
  CHECK(units(2, 4, SmallPolicy::kError) == Held{"[0, 1)", "[1, 2)", "nothing", "nothing"});
  CHECK(units(6, 4, SmallPolicy::kReplicate) == Held{"[0, 2)", "[2, 4)", "[4, 5)", "[5, 6)"});
  CHECK(units(0, 2, SmallPolicy::kReplicate) == Held{"nothing", "nothing"});
  CHECK_ERROR(kNotDivisible, units(3, 4, SmallPolicy::kReplicate));
}

TEST_CASE("other heads that are grouped so are called by their own names") {
  const HeadCounts counts{16, 4, "value heads", "key heads"};
  const auto refused =
      error_of([&] { return cut_heads(counts, tp(6), kTp, kBalanced, SmallPolicy::kReplicate); });
  REQUIRE(refused);
  CHECK(refused->message() ==
        "16 value heads and 4 key heads cannot share one cut over 6 devices: 6 devices are not a "
        "multiple of 4 key heads");
}

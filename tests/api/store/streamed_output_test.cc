// Outputs whose parts are sent while the run goes on.
#include <doctest/doctest.h>

#include "lib/api/check.h"
#include "lib/exec/stream.h"
#include "lib/store/local/tree.h"
#include "tests/api/store/stored_model.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

constexpr i64 kPart = 5 << 20;

}  // namespace

TEST_CASE("a streamed output has the bytes of a local one with any memory and any threads") {
  LargeModel model;
  const auto expected = model.expected();
  for (const i64 memory : {2 * exec::kMinMemory, i64{24} << 20, i64{512} << 20}) {
    for (const int threads : {1, 3, 0}) {
      model.store().clear();
      const TransformReport report = model.split("s3://bucket/out", memory, threads);
      CHECK((model.store().below("out") == expected));
      CHECK(model.store().open_uploads() == 0);
      CHECK(report.written->files == std::ssize(expected) - 1);
    }
  }
  CHECK(expected.at("model-rank-0-part-0.safetensors").size() > 2 * kPart);
  CheckOptions options;
  options.sources = {"s3://bucket/out"};
  CHECK(check(options).findings.empty());
}

TEST_CASE("a streamed output needs no room for its weights on this machine") {
  LargeModel model;
  TempFolder staging;
  setenv("TMPDIR", staging.path().c_str(), 1);
  i64 most = 0;
  model.store().disturb(
      [&](int, test::PlayedAnswer&) { most = std::max(most, store::disk_bytes(staging.path())); });
  model.split("s3://bucket/out", 32 << 20);
  unsetenv("TMPDIR");
  CHECK(most > 0);
  CHECK(most < 1 << 20);
}

TEST_CASE("a dry run warns of an output on a store that the run would not replace") {
  LargeModel model;
  SplitOptions options = model.options(kOutput);
  options.write.dry_run = true;
  CHECK(api::split(options).warnings.empty());
  model.store().put("out/notes", "of somebody else");
  const auto refused = api::split(options).warnings;
  REQUIRE(refused.size() == 1);
  CHECK(refused.front().starts_with("the run would be refused: the output exists"));
  CHECK(refused.front().find("replace this one with --force") != std::string::npos);
  options.write.force = true;
  const auto strange = api::split(options).warnings;
  REQUIRE(strange.size() == 1);
  CHECK(strange.front().find("not an output of shardtool") != std::string::npos);
  CHECK(model.store().below("out").size() == 1);
}

TEST_CASE("a role that may not delete is told so before anything is sent") {
  LargeModel model;
  model.store().clear();
  bool has_sent = false;
  model.store().change([&](const test::ReceivedRequest& request, test::PlayedAnswer& answer) {
    has_sent = has_sent || request.method == "PUT" || request.method == "POST";
    if (request.method == "DELETE") answer = {403, "", "<Error><Code>AccessDenied</Code></Error>"};
  });
  const auto error =
      testing::error_of([&] { return model.split("s3://bucket/out", 24 << 20, 2), 0; });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kStoreRefused);
  CHECK(error->help_lines().front().find("s3:DeleteObject") != std::string::npos);
  CHECK_FALSE(has_sent);
  CHECK(model.store().below("out").empty());
  model.store().clear();
}

TEST_CASE("a streamed run that is refused anywhere leaves nothing, or an output that is whole") {
  LargeModel model;
  const auto expected = model.expected();
  model.store().disturb([](int, test::PlayedAnswer&) {});
  model.split("s3://bucket/out", 24 << 20, 2);
  const int requests = model.store().requests();
  CHECK(requests > 15);
  for (int at = 1; at < requests; ++at) {
    model.store().clear();
    model.store().disturb([&](int number, test::PlayedAnswer& answer) {
      if (number == at) answer = {403, "", "<Error><Code>AccessDenied</Code></Error>"};
    });
    const auto error =
        testing::error_of([&] { return model.split("s3://bucket/out", 24 << 20, 2), 0; });
    if (!error) continue;  // a request whose answer does not matter
    CHECK(error->code() == ErrorCode::kStoreRefused);
    const auto left = model.store().below("out");
    // The refused request may be the one that has deleted the mark.
    CHECK((left.empty() || left.contains(".shardtool-unfinished") || left == expected));
    if (!left.contains("manifest.json")) continue;
    CHECK(error->is_resumable());
    for (const auto& [name, bytes] : expected)
      CHECK((left.contains(name) && left.at(name) == bytes));
  }
}

}  // namespace shardtool::api

// Outputs of which the store copies a part from the source by itself.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "lib/api/check.h"
#include "lib/api/diff.h"
#include "lib/api/finish.h"
#include "lib/api/plan.h"
#include "tests/api/store/stored_model.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::PlayedAnswer;
using test::ReceivedRequest;

/// Rows of 12 MiB tensors: 6 MiB for each rank.
class CopiedModel {
 public:
  CopiedModel() {
    test::Tensors tensors;
    for (const std::string name : {"rows.a", "rows.b", "rows.c", "rows.d"}) {
      tensors[name] = test::numbered_tensor(name, Dtype::kF32, {3072, 1024});
    }
    tensors["columns.a"] = test::numbered_tensor("columns.a", Dtype::kF32, {64, 1024});
    tensors["same.a"] = test::numbered_tensor("same.a", Dtype::kF32, {1024});
    test::write_checkpoint(folder_ / "model", tensors, 2);
    folder_.write("mapping.json",
                  R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}], "rules": [
                      {"match": "columns.*", "strategy": "columnwise"},
                      {"match": "rows.*", "strategy": "rowwise"},
                      {"match": "same.*", "strategy": "replicate"}]})");
    clear();
    SplitOptions local = options();
    local.source = folder_ / "model";
    local.write.output = folder_ / "out";
    split(local);
    expected_ = folder_content(folder_ / "out");
  }

  void clear() {
    store_.clear();
    store_.put_folder("model", folder_ / "model");
  }
  ServedStore& store() { return store_; }
  SplitOptions options() const {
    SplitOptions options;
    options.source = "s3://bucket/model";
    options.mapping.path = folder_ / "mapping.json";
    options.write.output = kOutput;
    options.write.journal_bytes = 1;
    options.write.worth_keeping = 1;
    return options;
  }
  /// Checks all files but the manifest, byte for byte.
  void check_files() {
    auto found = store_.below("out");
    auto expected = expected_;
    CHECK(found.erase("manifest.json") == 1);
    expected.erase("manifest.json");
    CHECK((found == expected));
    CHECK(store_.open_uploads() == 0);
  }
  const std::string& whole_manifest() const { return expected_.at("manifest.json"); }
  std::string manifest() const { return store_.below("out").at("manifest.json"); }

 private:
  ServedStore& store_ = ServedStore::instance();
  TempFolder folder_;
  std::map<std::string, std::string> expected_;
};

/// Bytes that a run gets from the store and sends to it.
struct Traffic {
  int ranges = 0;
  i64 read = 0;
  i64 sent = 0;
  std::vector<std::string> copies;  ///< key, part and upload of each

  bool copies_once() const {
    return std::set<std::string>(copies.begin(), copies.end()).size() == copies.size();
  }
};
void watch(ServedStore& store, Traffic& traffic) {
  store.change([&traffic](const ReceivedRequest& request, PlayedAnswer& answer) {
    traffic.ranges += answer.status == 206;
    if (answer.status == 206) traffic.read += std::ssize(answer.body);
    traffic.sent += std::ssize(request.body);
    if (request.headers.contains("x-amz-copy-source")) traffic.copies.push_back(request.target);
  });
}

}  // namespace

TEST_CASE("the store copies rows by itself, but for what is below the size of a part") {
  CopiedModel model;
  Traffic traffic;
  watch(model.store(), traffic);
  const TransformReport report = split(model.options());
  model.check_files();
  // Header and columns of a rank take what they lack of 5 MiB from the first rows, which are then
  // too small. The other three tensors have 6 MiB each.
  CHECK(traffic.copies.size() == 2 * 3);
  CHECK(traffic.copies_once());
  CHECK(report.written->copied_by_store == 2 * 3 * (6 << 20));
  CHECK(traffic.sent < 2 * (7 << 20));
  CHECK(traffic.read < 2 * (8 << 20));
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings.front().find("copied 3 tensors by itself") != std::string::npos);
}

TEST_CASE("a dry run and a plan count the requests of a run that the store copies for") {
  CopiedModel model;
  const auto requests_of = [&](const SplitOptions& options, Traffic& traffic) {
    traffic = {};
    watch(model.store(), traffic);
    return split(options).plan.requests;
  };
  SplitOptions options = model.options();
  options.write.copy_other_files = false;
  Traffic headers;
  options.write.dry_run = true;
  const auto planned = requests_of(options, headers);
  REQUIRE(planned);
  CHECK(headers.copies.empty());
  Traffic run;
  options.write.dry_run = false;
  CHECK_FALSE(requests_of(options, run));
  CHECK(planned->copies == std::ssize(run.copies));
  CHECK(planned->copied_bytes == 2 * 3 * (6 << 20));
  CHECK(planned->requests == run.ranges - headers.ranges);
  CHECK(planned->bytes == run.read - headers.read);
  CHECK(planned->read_amplification >= 1);
  PlanOptions plan;
  plan.sources = {options.source};
  plan.mapping.path = options.mapping.path;
  const SourceRequests to_store = make_plan(plan).reads->to_same_store;
  CHECK(to_store.requests == planned->requests);
  CHECK(to_store.bytes == planned->bytes);
  CHECK(to_store.copies == planned->copies);
  CHECK(to_store.copied_bytes == planned->copied_bytes);
  // Shares count their own tensors.
  model.clear();
  SourceRequests of_shares{0, 0};
  for (const int number : {0, 1}) {
    options.write.dry_run = true;
    options.write.share = Share{number, 2};
    const auto share = split(options).plan.requests;
    REQUIRE(share);
    of_shares.requests += share->requests;
    of_shares.copies += share->copies;
    options.write.dry_run = false;
    split(options);
  }
  CHECK(of_shares.copies == planned->copies);
  CHECK(of_shares.requests >= planned->requests);
  // Data that is read back is not copied by the store.
  options.write.share.reset();
  options.write.dry_run = options.write.verify = true;
  options.write.force = true;
  CHECK(split(options).plan.requests->copies == 0);
}

TEST_CASE("the manifest says which tensors nobody has read, and readers take it") {
  CopiedModel model;
  split(model.options());
  const auto manifest = nlohmann::json::parse(model.manifest());
  CHECK(manifest.at("tensors").at("rows.b").at("unread") == true);
  CHECK_FALSE(manifest.at("tensors").at("rows.b").contains("digest"));
  CHECK(manifest.at("tensors").at("columns.a").contains("digest"));
  CHECK_FALSE(manifest.at("tensors").at("columns.a").contains("unread"));
  CheckOptions checked;
  checked.sources = {kOutput};
  const auto findings = check(checked).findings;
  CHECK(std::ranges::all_of(findings, [](const check::Finding& finding) {
    return finding.rule == check::CheckRule::kUnread;
  }));
  CHECK_FALSE(findings.empty());
  DiffOptions compared;
  compared.a = kOutput;
  compared.b = "s3://bucket/model";
  CHECK(diff(compared).equal);
  // A verdict that nothing can prove is refused.
  SplitOptions resumed = model.options();
  resumed.write.resume = resumed.write.verify = true;
  CHECK_ERROR(kDataMismatch, split(resumed));
  // With a manifest of the source, the digests are known.
  ReshardOptions again;
  again.sources = {kOutput};
  SplitOptions verified = model.options();
  verified.write.verify = true;
  verified.write.force = true;
  const TransformReport report = split(verified);
  CHECK(report.written->copied_by_store == 0);
  CHECK(model.manifest() == model.whole_manifest());
  again.to.mesh = mesh::Mesh({{"tp", 1}});
  again.write.output = "s3://bucket/again";
  CHECK(api::reshard(again).written->copied_by_store > 0);
  const auto copied = nlohmann::json::parse(model.store().below("again").at("manifest.json"));
  CHECK(copied.at("tensors").at("rows.b").at("unread") == true);
  CHECK(copied.at("tensors").at("rows.b").at("digest") ==
        nlohmann::json::parse(model.whole_manifest()).at("tensors").at("rows.b").at("digest"));
}

TEST_CASE("a store that refuses to copy gets the data from this machine, and the user is told") {
  CopiedModel model;
  const auto refuse_from = [&](int first) {
    model.clear();
    int copies = 0;
    model.store().change(
        [&, first, copies](const ReceivedRequest& request, PlayedAnswer& answer) mutable {
          const bool is_copy = request.headers.contains("x-amz-copy-source");
          if (is_copy && ++copies >= first) {
            answer = {501, "", "<Error><Code>NotImplemented</Code></Error>"};
          }
        });
  };
  refuse_from(1);
  const TransformReport none = split(model.options());
  model.check_files();
  CHECK(model.manifest() == model.whole_manifest());
  REQUIRE(none.warnings.size() == 1);
  CHECK(none.warnings.front().find("refuses to copy data by itself (status 501 NotImplemented)") !=
        std::string::npos);
  refuse_from(4);
  const TransformReport some = split(model.options());
  model.check_files();
  CHECK(some.written->copied_by_store > 0);
  CHECK(some.warnings.size() == 2);
}

TEST_CASE("a source that changes while the store copies it leaves no output") {
  CopiedModel model;
  int copies = 0;
  model.store().change([&](const ReceivedRequest& request, PlayedAnswer& answer) {
    const bool is_copy = request.headers.contains("x-amz-copy-source");
    if (is_copy && ++copies > 2)
      answer = {412, "", "<Error><Code>PreconditionFailed</Code></Error>"};
  });
  CHECK_ERROR(kInputChanged, split(model.options()));
  CHECK(model.store().below("out").empty());
  CHECK(model.store().open_uploads() == 0);
}

TEST_CASE("shares and resumed runs with copies make one output") {
  CopiedModel model;
  split(model.options());
  const std::string manifest = model.manifest();
  for (const int shares : {1, 2, 3}) {
    model.clear();
    Traffic traffic;
    watch(model.store(), traffic);
    for (int number = shares; number-- > 0;) {
      SplitOptions options = model.options();
      options.write.share = Share{number, shares};
      split(options);
    }
    model.check_files();
    CHECK(model.manifest() == manifest);
    CHECK(traffic.copies.size() == 2 * 3);
    CHECK(traffic.copies_once());
  }
  for (const int at : {14, 17, 21, 25, 29}) {  // with 13 the store refuses to copy
    model.clear();
    model.store().disturb([at](int number, PlayedAnswer& answer) {
      if (number >= at) answer = {403, "", "<Error><Code>AccessDenied</Code></Error>"};
    });
    if (!testing::error_of([&] { return split(model.options()); })) break;
    model.store().disturb(nullptr);
    SplitOptions options = model.options();
    options.write.resume = true;
    split(options);
    model.check_files();
    CHECK(model.manifest() == manifest);
  }
}

}  // namespace shardtool::api

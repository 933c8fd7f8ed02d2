#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "lib/api/check.h"
#include "lib/api/diff.h"
#include "lib/api/plan.h"
#include "lib/api/transform.h"
#include "tests/api/store/stored_model.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::PlayedAnswer;

}  // namespace

TEST_CASE("a checkpoint on an object store gives the output of its local copy") {
  ModelOnStore model;
  const auto local = model.split(model.local());
  CHECK((model.split(model.remote()) == local));
  model.store().put_folder("shards", model.last_output());
  const auto whole = model.merge(model.last_output());
  CHECK((model.merge("s3://bucket/shards") == whole));
  DiffOptions options;
  options.a = "s3://bucket/shards";
  options.b = model.local();
  CHECK(diff(options).equal);
}

TEST_CASE("a store that drops the ETag is not said to have changed objects") {
  ModelOnStore model;
  for (const std::string method : {"HEAD", "GET"}) {
    model.store().change([&](const test::ReceivedRequest& request, PlayedAnswer& answer) {
      const size_t tag = answer.headers.find("ETag: ");
      if (request.method != method || tag == answer.headers.npos) return;
      answer.headers.erase(tag, answer.headers.find('\n', tag) + 1 - tag);
    });
    const auto error = testing::error_of([&] { return model.split(model.remote()); });
    CHECK(error.has_value() == (method == "HEAD"));
    if (!error) continue;
    CHECK(error->code() == ErrorCode::kUnsupported);
    CHECK(error->notes().front().second == "no ETag in the answer to HEAD");
  }
  model.store().clear();
}

TEST_CASE("a dry run counts the requests that the run then sends") {
  ModelOnStore model;
  const auto ranges_of = [&](SplitOptions options) {
    std::atomic<int> ranges = 0;
    model.store().disturb([&](int, PlayedAnswer& answer) { ranges += answer.status == 206; });
    const TransformReport report = api::split(options);
    model.store().disturb(nullptr);
    return std::pair(ranges.load(), report.plan.requests);
  };
  SplitOptions options;
  options.source = model.remote();
  options.mapping.path = model.local() + "/mapping.json";
  options.write.output = model.next_output();
  options.write.copy_other_files = false;
  for (const std::vector<i64>& ranks : {std::vector<i64>{}, {0}, {2}, {0, 2}}) {
    options.ranks = ranks;
    options.write.dry_run = true;
    const auto [headers, requests] = ranges_of(options);
    REQUIRE(requests);
    options.write.dry_run = false;
    options.write.force = true;
    const auto [all, none] = ranges_of(options);
    const int samples = ranks.empty() ? 0 : 2;  // of two short files
    CHECK(all - headers - samples == requests->requests);
    CHECK_FALSE(none);
    CHECK(requests->bytes > 0);
    CHECK(requests->read_amplification >= 1);
    CHECK(requests->read_amplification < 2);
  }
  options.source = model.local();
  options.write.dry_run = true;
  CHECK_FALSE(api::split(options).plan.requests);
}

TEST_CASE("the recorded shapes of packed weights cost a check no requests of their own") {
  const TempFolder folder;
  test::Tensors tensors;
  const auto add = [&](const std::string& name, Dtype dtype, const Shape& shape) {
    tensors[name] = test::numbered_tensor(name, dtype, shape);
  };
  for (i64 layer = 0; layer < 12; ++layer) {
    const std::string name = "layers." + std::to_string(layer) + ".up.weight_";
    add(name + "packed", Dtype::kI32, {32, 8});
    add(name + "scale", Dtype::kF16, {32, 4});
    add(name + "shape", Dtype::kI64, {2});
    const i64 said[]{32, layer == 5 ? 65 : 64};
    std::memcpy(tensors[name + "shape"].bytes.data(), said, sizeof said);
  }
  test::write_checkpoint(folder / "plain", tensors, 2);
  std::filesystem::copy(folder / "plain", folder / "packed");
  folder.write("plain/config.json", "{}");
  folder.write("packed/config.json", R"({"quantization_config": {
    "quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {
    "targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "group_size": 16,
    "strategy": "group", "symmetric": true}}}}})");
  ServedStore& store = ServedStore::instance();
  store.clear();
  const auto checked = [&](const std::string& model) {
    store.put_folder(model, folder / model);
    std::atomic<int> ranges = 0;
    store.disturb([&](int, PlayedAnswer& answer) { ranges += answer.status == 206; });
    CheckOptions options;
    options.sources = {"s3://bucket/" + model};
    options.data = check::DataSubset{};
    const CheckReport report = api::check(options);
    store.disturb(nullptr);
    return std::pair(
        ranges.load(),
        std::ranges::count(report.findings, check::CheckRule::kScaleShape, &check::Finding::rule));
  };
  const auto [plain, none] = checked("plain");
  const auto [packed, wrong] = checked("packed");
  CHECK(plain > 0);
  CHECK(packed == plain);
  CHECK(none == 0);
  CHECK(wrong == 1);
}

TEST_CASE("a plan counts the requests of a run for all ranks and of one for each rank") {
  ModelOnStore model;
  PlanOptions planned;
  planned.sources = {model.remote()};
  planned.mapping.path = model.local() + "/mapping.json";
  const PlanReport report = make_plan(planned);
  REQUIRE(report.reads);
  REQUIRE(report.reads->alone.size() == 3);
  SplitOptions options;
  options.source = model.remote();
  options.mapping.path = planned.mapping.path;
  options.write.output = model.next_output();
  options.write.dry_run = true;
  const auto agree = [](const SourceRequests& a, const SourceRequests& b) {
    return a.requests == b.requests && a.bytes == b.bytes &&
           a.read_amplification == b.read_amplification;
  };
  CHECK(agree(*api::split(options).plan.requests, report.reads->together));
  for (i64 rank = 0; rank < 3; ++rank) {
    options.ranks = {rank};
    CHECK(
        agree(*api::split(options).plan.requests, report.reads->alone[static_cast<size_t>(rank)]));
  }
  planned.sources = {model.local()};
  CHECK_FALSE(make_plan(planned).reads);
}

TEST_CASE("a fault at any request leaves the output as it is") {
  ModelOnStore model;
  const auto expected = model.split(model.local());
  model.store().disturb([](int, PlayedAnswer&) {});
  model.split(model.remote());
  const int requests = model.store().requests();
  for (int at = 1; at <= requests; ++at) {
    for (const int status : {0, 500, 503, 206}) {
      model.store().disturb([&](int number, PlayedAnswer& answer) {
        if (number != at) return;
        if (status == 206) {
          answer.cut_after = answer.body.size() / 2;
        } else {
          answer = {status, "", ""};
        }
      });
      CHECK((model.split(model.remote()) == expected));
    }
  }
}

TEST_CASE("an object that is replaced during a run leaves no output") {
  ModelOnStore model;
  model.store().disturb([](int, PlayedAnswer&) {});
  model.split(model.remote());
  const int requests = model.store().requests();
  int failures = 0;
  for (int at = 1; at <= requests; ++at) {
    ModelOnStore changing;
    changing.store().disturb([&](int number, PlayedAnswer& answer) {
      const size_t tag = answer.headers.find("ETag: \"");
      if (number >= at && tag != std::string::npos) answer.headers[tag + 7] = '!';
    });
    const auto error = testing::error_of([&] { changing.split(changing.remote()); });
    if (!error) continue;
    ++failures;
    CHECK(error->code() == ErrorCode::kInputChanged);
    CHECK_FALSE(std::filesystem::exists(changing.last_output()));
  }
  CHECK(failures > 0);
}

TEST_CASE("an output on an object store has the bytes of a local one") {
  ModelOnStore model;
  const auto expected = model.split(model.local());
  const std::string parts = model.last_output();
  model.split_to("parts");
  CHECK((model.store().below("parts") == expected));
  CHECK_ERROR(kOutputExists, model.split_to("parts"));
  model.split_to("parts", true);
  CHECK((model.store().below("parts") == expected));
  CHECK((model.merge("s3://bucket/parts") == model.merge(parts)));
}

TEST_CASE("a failed run leaves nothing on the object store and publishes nothing") {
  ModelOnStore model;
  model.split_to("parts");
  model.store().clear();
  model.store().disturb([](int, PlayedAnswer&) {});
  model.split_to("parts");
  const int requests = model.store().requests();
  for (int at = 1; at < requests; ++at) {
    model.store().clear();
    model.store().disturb([&](int number, PlayedAnswer& answer) {
      if (number == at) answer = {403, "", "<Error><Code>AccessDenied</Code></Error>"};
    });
    if (!testing::error_of([&] { return model.split_to("parts"), 0; })) continue;
    const auto left = model.store().below("parts");
    CHECK((left.empty() || left.contains(".shardtool-unfinished")));
    CHECK(model.store().open_uploads() == 0);
    model.store().disturb(nullptr);
    model.split_to("parts");
    CHECK((model.store().below("parts") == model.split(model.local())));
  }
}

TEST_CASE("readers refuse a prefix whose output was not finished and the next run writes over it") {
  ModelOnStore model;
  model.split_to("parts");
  auto content = model.store().below("parts");
  model.store().put("cut/.shardtool-unfinished", "");
  model.store().put("cut/model-rank-0-part-0.safetensors",
                    content.at("model-rank-0-part-0.safetensors"));
  model.store().put("cut/stale", "from a run with other files");
  CHECK_ERROR(kFileMissing, model.merge("s3://bucket/cut"));
  model.split_to("cut");
  CHECK((model.store().below("cut") == content));
  // Ended between the manifest and the removal of the mark.
  model.store().put("cut/.shardtool-unfinished", "");
  const auto refused = testing::error_of([&] { model.merge("s3://bucket/cut"); });
  REQUIRE(refused);
  CHECK(refused->message().find("'.shardtool-unfinished'") != std::string::npos);
  CHECK(refused->message().find("no manifest") == std::string::npos);
  model.split_to("cut");
  CHECK((model.store().below("cut") == content));
}

TEST_CASE("what an object store cannot take is refused before anything is written") {
  ModelOnStore model;
  SplitOptions options;
  options.source = model.remote();
  options.mapping.path = model.local() + "/mapping.json";
  options.write.output = "s3://bucket/model/parts";
  CHECK_ERROR(kOutputAliasesInput, api::split(options));
  options.write.output = "s3://bucket";
  CHECK_ERROR(kUsage, api::split(options));
  options.write.output = "s3://bucket/parts";
  model.store().put("parts/notes.txt", "of somebody");
  options.write.force = true;
  CHECK_ERROR(kOutputExists, api::split(options));
  CHECK(model.store().below("parts").size() == 1);
}

TEST_CASE("a store that ends its answers during a run is an error of the store") {
  ModelOnStore model;
  model.split(model.remote());
  model.store().disturb([](int number, PlayedAnswer& answer) {
    if (number > 4) answer = {403, "", "<Error><Code>ExpiredToken</Code></Error>"};
  });
  CHECK_ERROR(kStoreRefused, model.split(model.remote()));
  CHECK_FALSE(std::filesystem::exists(model.last_output()));
}

}  // namespace shardtool::api

// Runs from a store that names the versions of objects by the time of their last change, or not.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <string>

#include "lib/base/interruption.h"
#include "lib/store/reader.h"
#include "tests/api/store/stored_model.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

constexpr const char* kVersioned = "s3://bucket/versions";

/// Has the store tell this second of the last change of each object instead of its ETag, or
/// neither.
void tell(ServedStore& store, std::optional<int> second) {
  const std::string header =
      second ? fmt::format("Last-Modified: Wed, 21 Oct 2015 07:28:{:02} GMT\r\n", *second) : "";
  const std::string element =
      second ? fmt::format("<LastModified>2015-10-21T07:28:{:02}.000Z</LastModified>", *second)
             : "";
  store.change([=](const test::ReceivedRequest&, test::PlayedAnswer& answer) {
    if (answer.headers.starts_with("ETag"))
      answer.headers.replace(0, answer.headers.find('\n') + 1, header);
    if (!answer.body.starts_with("<ListBucketResult>")) return;
    constexpr std::string_view kEnd = "</ETag>";
    for (size_t at = 0; (at = answer.body.find("<ETag>", at)) != std::string::npos;) {
      answer.body.replace(at, answer.body.find(kEnd, at) + kEnd.size() - at, element);
    }
  });
  shardtool::store::forget_listing(kVersioned);
}

/// Splits until some tensors are finished; returns the error.
std::optional<Error> split_partly(SplitOptions options) {
  constexpr i64 kSome = 12 << 20;
  std::atomic<bool> flag = false;
  options.write.resources.on_progress = [&flag](const exec::Progress& progress) {
    flag = progress.bytes_done > kSome;
  };
  const Interruptible scope(&flag);
  return testing::error_of([&] { return api::split(options); });
}

struct VersionedModel : LargeModel {
  TempFolder outputs;
  SplitOptions split = options(outputs / "out", 16 << 20);

  VersionedModel() {
    store().put_folder("versions", local());
    split.source = kVersioned;
    split.write.resources.threads = 1;
  }
};

TEST_CASE(
    "a run from a store without ETags is resumed while the times of its objects are the same") {
  VersionedModel model;
  const auto expected = model.expected();
  tell(model.store(), 10);
  const auto error = split_partly(model.split);
  REQUIRE(error);
  CHECK(error->is_resumable());
  model.split.write.resume = true;
  tell(model.store(), 11);
  CHECK_ERROR(kOtherRun, api::split(model.split));
  tell(model.store(), 10);
  CHECK(api::split(model.split).resumed->tensors > 0);
  CHECK((folder_content(model.split.write.output) == expected));
}

TEST_CASE("a run from a store that names no versions is whole or not at all") {
  VersionedModel model;
  const auto expected = model.expected();
  tell(model.store(), std::nullopt);
  const auto error = split_partly(model.split);
  REQUIRE(error);
  CHECK_FALSE(error->is_resumable());
  CHECK(std::filesystem::is_empty(model.outputs / "."));
  SplitOptions resumed = model.split;
  resumed.write.resume = true;
  CHECK_ERROR(kUnsupported, api::split(resumed));
  SplitOptions shared = model.split;
  shared.write.share = Share{0, 2};
  CHECK_ERROR(kUnsupported, api::split(shared));
  api::split(model.split);
  CHECK((folder_content(model.split.write.output) == expected));
}

}  // namespace
}  // namespace shardtool::api

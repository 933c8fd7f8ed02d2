#include "shardtool/plan/hardware_profile.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "shardtool/plan/profile_list.h"
#include "tests/support/throws.h"

using namespace shardtool;
using plan::decode_profile;
using plan::find_profile;
using testing::error_of;

namespace {

/// The text of a profile with one part replaced, which must be there.
std::string altered(std::string_view part, std::string_view by) {
  std::string text(plan::profile_text("h100-sxm"));
  const size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), by);
}

std::string message_of(const std::string& text) {
  const auto error = error_of([&] { return decode_profile(text, "mine.json"); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kHardwareProfile);
  REQUIRE(error->place());
  CHECK(error->place()->file == "mine.json");
  CHECK(error->place()->line > 0);
  return error->message();
}

}  // namespace

TEST_CASE(
    "every built-in profile decodes, is sorted by name, and says where its numbers come from") {
  const auto names = plan::profile_names();
  CHECK(names.size() == 15);
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const std::string& name : names) {
    CAPTURE(name);
    const auto profile = find_profile(name);
    CHECK(profile.name == name);
    CHECK_FALSE(profile.description.empty());
    CHECK(profile.source.size() >= 2);
    CHECK(profile.usable_bytes > profile.runtime_bytes);
  }
}

TEST_CASE("a profile's units are decimal, except what says GiB") {
  const auto h200 = find_profile("h200-sxm");
  CHECK(h200.memory_bytes == 141'000'000'000);
  CHECK(h200.usable_bytes == 150'753'352'090);  // 140.4 GiB; the driver: 143,771 MiB
  CHECK(h200.memory_gb_per_s == 4800);
  CHECK(h200.rates.fp8_tflops == 1979);
  CHECK_FALSE(find_profile("a100-80-sxm").rates.fp8_tflops);
  CHECK(h200.domain() == 8);
  CHECK(find_profile("gb200-nvl72").domain() == 72);
  CHECK(std::get<plan::Torus>(find_profile("tpu-v5p").fabric).axes == 3);
}

TEST_CASE("critical batch sizes follow from rates and bandwidths") {
  // scaling-book gpus.md and inference.md: FLOP/s over bytes/s, 295 and 240; B200's 281 is with its
  // marketed 8 TB/s, of which the profile has the 7.7 that the bus gives
  const auto batch = [](std::string_view name) {
    const auto profile = find_profile(name);
    return profile.rates.bf16_tflops * 1e3 / profile.memory_gb_per_s;
  };
  CHECK(batch("h100-sxm") == doctest::Approx(295).epsilon(2e-3));
  CHECK(batch("tpu-v5e") == doctest::Approx(240).epsilon(3e-3));
  CHECK(batch("tpu-v5e") / 2 == doctest::Approx(120).epsilon(3e-3));  // int8 weights
  CHECK(batch("b200-sxm") * 7.7 / 8 == doctest::Approx(281).epsilon(2e-3));
}

TEST_CASE("a number that is missing, absurd or of another field is refused with its place") {
  CHECK(message_of(altered("\"gb_per_s\": 3350, ", "")) == "'gb_per_s' is missing");
  CHECK(message_of(altered("\"gb_per_s\": 3350", "\"gbps\": 3350")) ==
        "'gbps' is no field of a profile");
  CHECK(message_of(altered("\"bf16\": 989", "\"bf16\": -1")) == "the number is out of range");
  CHECK(message_of(altered("\"bf16\": 989", "\"bf16\": 0")) == "the number is out of range");
  CHECK(message_of(altered("\"bf16\": 989", "\"bf16\": 9.89e14")) == "the number is out of range");
  CHECK(message_of(altered("\"domain\": 8", "\"domain\": 0")) == "the number is out of range");
  CHECK(message_of(altered("\"compute\": 0.7", "\"compute\": 70")) == "the number is out of range");
  CHECK(message_of(altered("\"usable_gib\": 79.18", "\"usable_gib\": 90")) ==
        "the parts of the memory exceed it");
  CHECK(message_of(altered("\"kind\": \"nvlink\"", "\"kind\": \"token ring\"")) ==
        "the kind of the fabric is not known");
  CHECK(message_of(altered("\"kind\": \"nvlink\"", "\"kind\": \"torus\"")) ==
        "the fields do not describe a fabric of kind 'torus'");
  CHECK(message_of(altered("\"version\": 1", "\"version\": 2")) ==
        "the profile is of another version");
  CHECK(message_of("{}") == "'version' is missing");
  message_of("[1]");
  message_of("");
}

TEST_CASE("a timing has two rising points or more") {
  const auto with = [](std::string points) {
    return altered("\"version\": 1", R"("version": 1, "timings": [{"op": "all_reduce", "devices": 8,
      "us_of_bytes": )" + points + "}]");
  };
  CHECK(decode_profile(with("[[1024, 10.5], [2048, 11]]"), "").timings.size() == 1);
  CHECK(message_of(with("[[1024, 10]]")) == "a timing has two points or more");
  CHECK(message_of(with("[[1024, 10], [1024, 11]]")) ==
        "a point of a timing is [bytes, microseconds], larger than the one before");
  CHECK(message_of(with("[[1024, 10], [2048]]")) ==
        "a point of a timing is [bytes, microseconds], larger than the one before");
  CHECK(message_of(altered("\"version\": 1", R"("version": 1, "timings": [{"op": "gather"}])")) ==
        "no such collective");
}

TEST_CASE("a profile that is not built in is an error with near misses") {
  const auto error = error_of([] { return find_profile("h100-pci"); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUnknownName);
  CHECK(error->help_lines().front() == "did you mean 'h100-pcie'?");
}

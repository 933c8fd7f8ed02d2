#include "lib/plan/collective/hardware_profile.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/plan/collective/profile_list.h"
#include "tests/support/throws.h"

using namespace shardtool;
using plan::decode_profile;
using plan::find_profile;
using testing::error_of;

namespace {

/// Text of a profile with one part replaced, which must be present.
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
  CHECK(names.size() == 17);
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
  CHECK(find_profile("gb300-nvl72").memory_bytes == 288'000'000'000);
  CHECK(find_profile("rtx-pro-6000").rates.fp4_tflops == 1871.2);
  CHECK(std::get<plan::Torus>(find_profile("tpu-v5p").fabric).axes == 3);
}

TEST_CASE("critical batch sizes follow from rates and bandwidths") {
  // scaling-book gpus.md and inference.md: FLOP/s over bytes/s, 295 and 240; B200's 281 uses its
  // marketed 8 TB/s, the profile 7.7 as given by the bus
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
        "'gbps' is not a field of a profile");
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

TEST_CASE("a profile's text gives the same profile, and the same text") {
  const std::string measured = R"({
    "version": 1, "name": "mine", "description": "two \"ranks\"", "source": ["measured"],
    "memory": {"gb": 16.5, "gb_per_s": 12.25},
    "dense_tflops": {"bf16": 0.05},
    "fabric": {"kind": "messages", "domain": 2, "latency_us": 3.5, "gb_per_s": 1.25},
    "network_gb_per_s": 1.25, "efficiency": {"compute": 1, "memory": 1}, "launch_us": 0.5,
    "timings": [{"op": "all_reduce", "devices": 2, "us_of_bytes": [[1024, 7.5], [65536, 90]]}],
    "storage": {"read_us_of_bytes": [[4096, 30], [1048576, 700]],
                "write_us_of_bytes": [[4096, 60], [1048576, 900]]},
    "measured": {"date": "2026-11-22", "host": "a machine"}})";
  const auto mine = decode_profile(measured, "mine.json");
  CHECK(mine.storage->read_us_of_bytes.back().second == 700);
  CHECK(mine.measured->host == "a machine");
  std::vector<plan::HardwareProfile> all{mine};
  for (const std::string& name : plan::profile_names()) all.push_back(find_profile(name));
  for (const plan::HardwareProfile& profile : all) {
    CAPTURE(profile.name);
    const std::string text = plan::to_json(profile);
    const auto again = decode_profile(text, "again.json");
    CHECK(plan::to_json(again) == text);
    CHECK(again.memory_bytes == profile.memory_bytes);
    CHECK(again.usable_bytes == profile.usable_bytes);
    CHECK(again.runtime_bytes == profile.runtime_bytes);
    CHECK(again.fabric.index() == profile.fabric.index());
    CHECK(again.domain() == profile.domain());
    CHECK(again.timings.size() == profile.timings.size());
    CHECK(again.launch_us == profile.launch_us);
  }
}

TEST_CASE("a fabric of messages has a latency and a bandwidth, and nothing else") {
  const auto with = [](const std::string& fields) {
    std::string text(plan::profile_text("h100-sxm"));
    const size_t begin = text.find("{\"kind\"");
    const size_t end = text.find('}', begin);
    return text.replace(begin, end - begin, R"({"kind": "messages", "domain": 4, )" + fields);
  };
  const auto profile = decode_profile(with(R"("latency_us": 10, "gb_per_s": 2)"), "");
  CHECK(std::get<plan::Messages>(profile.fabric).latency_us == 10);
  CHECK(message_of(with(R"("latency_us": 10)")) ==
        "the fields do not describe a fabric of kind 'messages'");
  CHECK(message_of(with(R"("latency_us": 10, "gb_per_s": 2, "in_switch_gb_per_s": 3)")) ==
        "the fields do not describe a fabric of kind 'messages'");
}

TEST_CASE("the storage of a profile has a table of reads and one of writes") {
  const auto with = [](const std::string& storage) {
    return altered("\"version\": 1", "\"version\": 1, \"storage\": " + storage);
  };
  CHECK(message_of(with(R"({"read_us_of_bytes": [[4096, 30], [8192, 40]]})")) ==
        "'write_us_of_bytes' is missing");
  CHECK(message_of(with(R"({"read_us_of_bytes": [[4096, 30], [8192, 20]]})")) ==
        "a point of a timing is [bytes, microseconds], larger than the one before");
}

TEST_CASE("a profile that is not built in is an error with near misses") {
  const auto error = error_of([] { return find_profile("h100-pci"); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUsage);
  CHECK(error->help_lines().front() == "did you mean 'h100-pcie'?");
}

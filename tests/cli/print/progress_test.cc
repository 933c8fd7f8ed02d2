#include "cli/print/progress.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>

namespace shardtool::cli {
namespace {

/// A printer with a manual clock that keeps its lines.
struct Bench {
  explicit Bench(ProgressMode mode, size_t width = 100)
      : printer(
            mode, width, [this] { return now; },
            [this](std::string_view text) { lines.emplace_back(text); }) {}

  void at(double seconds, i64 done) {
    now = seconds;
    printer.update({done, 1000, "item"});
  }

  double now = 0;
  std::vector<std::string> lines;
  ProgressPrinter printer;
};

TEST_CASE("a bar is never wider than its terminal") {
  CHECK(rc::check("any state, any width", [] {
    const auto total = *rc::gen::inRange<i64>(0, i64{1} << 50);
    const ProgressState state{{*rc::gen::inRange<i64>(0, total + 1), total,
                               std::string(*rc::gen::inRange<size_t>(0, 300), 'n')},
                              static_cast<double>(*rc::gen::inRange<i64>(0, i64{1} << 40))};
    const auto width = *rc::gen::inRange<size_t>(0, 250);
    RC_ASSERT(progress_bar(state, width).size() <= (width == 0 ? 0 : width - 1));
  }));
}

TEST_CASE("a bar says part, bytes, rate, time left and item") {
  const ProgressState state{{i64{887} << 20, i64{1774} << 20, "layers.18.mlp.up_proj"},
                            887.0 * (1 << 20)};
  CHECK(progress_bar(state, 110) ==
        "writing  [############>...........] 50.0%  887 MiB/1.73 GiB  887 MiB/s  ETA 0:01  "
        "layers.18.mlp.up_proj");
  CHECK(
      progress_bar(state, 90) ==
      "writing  [########>........] 50.0%  887 MiB/1.73 GiB  887 MiB/s  ETA 0:01  ...mlp.up_proj");
  // A narrow terminal has room for the bar alone.
  CHECK(progress_bar(state, 75) ==
        "writing  [#########>........] 50.0%  887 MiB/1.73 GiB  887 MiB/s  ETA 0:01");
  ProgressState reading = state;
  reading.verb = "reading";
  CHECK(progress_line(reading) ==
        "reading  50.0%  887 MiB/1.73 GiB  887 MiB/s  ETA 0:01  layers.18.mlp.up_proj");
}

TEST_CASE("a short run shows nothing, a longer one at most ten frames a second") {
  Bench bench(ProgressMode::kBar);
  for (int i = 0; i < 49; ++i) bench.at(i * 0.01, i);
  CHECK(bench.lines.empty());
  for (int i = 50; i <= 150; ++i) bench.at(i * 0.01, i);
  CHECK(bench.lines.size() >= 9);
  CHECK(bench.lines.size() <= 11);
  bench.printer.finish();
  CHECK(bench.lines.back() == "\r\x1b[K");
}

TEST_CASE("a run that ended before its first frame leaves nothing behind") {
  Bench bench(ProgressMode::kBar);
  bench.at(0.1, 1000);
  bench.printer.finish();
  CHECK(bench.lines.empty());
}

TEST_CASE("a log gets one plain line every ten seconds, without control characters") {
  Bench bench(ProgressMode::kLines);
  for (int i = 0; i <= 95; ++i) bench.at(i, i);
  bench.printer.finish();
  REQUIRE(bench.lines.size() == 9);
  for (const auto& line : bench.lines) {
    CHECK(line.find('\x1b') == std::string::npos);
    CHECK(line.find('\r') == std::string::npos);
    CHECK(line.back() == '\n');
  }
}

TEST_CASE("JSON lines end with a summary") {
  Bench bench(ProgressMode::kJson);
  bench.at(1, 100);
  bench.at(2, 1000);
  bench.printer.finish();
  REQUIRE(bench.lines.size() == 3);
  const auto first = nlohmann::json::parse(bench.lines[0]);
  CHECK(first.at("message_type") == "status");
  CHECK(first.at("bytes_done") == 100);
  CHECK(first.at("eta_s") == 9);
  const auto last = nlohmann::json::parse(bench.lines[2]);
  CHECK(last.at("message_type") == "summary");
  CHECK(last.at("bytes_done") == 1000);
}

TEST_CASE("the summary of a run that is shorter than the first measurement has its rate") {
  Bench bench(ProgressMode::kJson);
  bench.at(0.05, 1000);
  bench.printer.finish();
  CHECK(nlohmann::json::parse(bench.lines.back()).at("rate") == 20'000);
}

TEST_CASE("the rate follows the recent past") {
  Bench bench(ProgressMode::kJson);
  for (int i = 1; i <= 10; ++i) bench.at(i, i * 10);
  for (int i = 11; i <= 30; ++i) bench.at(i, 100 + (i - 10) * 40);
  const double rate = nlohmann::json::parse(bench.lines.back()).at("rate");
  CHECK(rate > 39);
  CHECK(rate <= 40);
}

TEST_CASE("the flag decides the mode, then the terminal, quiet silences all") {
  using enum ProgressMode;
  CHECK(progress_mode("", true, false) == kBar);
  CHECK(progress_mode("auto", false, false) == kLines);
  CHECK(progress_mode("always", false, false) == kBar);
  CHECK(progress_mode("never", true, false) == kNone);
  CHECK(progress_mode("json", true, false) == kJson);
  CHECK(progress_mode("always", true, true) == kNone);
}

}  // namespace
}  // namespace shardtool::cli

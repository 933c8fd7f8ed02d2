// A run that dies at any point leaves the old state or the complete new one, and --resume produces
// the bytes of an undisturbed run.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>

#include "lib/api/transform.h"
#include "lib/base/interruption.h"
#include "lib/store/local/output_claim.h"
#include "lib/store/local/tree.h"
#include "tests/api/disturbed_jobs.h"
#include "tests/support/dying_syscalls.h"
#include "tests/support/faulty_syscalls.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;
using testing::Call;
using testing::Death;
using testing::FaultySyscalls;

/// Statistics of the deaths of one verb.
struct Toll {
  int deaths = 0;
  int published = 0;  ///< deaths after the output was published
  i64 tensors = 0;    ///< tensors that resuming did not repeat
  int lost = 0;       ///< wrong outputs
};

Toll die_everywhere(const Jobs& jobs, Verb verb, Death death, int step) {
  Toll toll;
  for (int n = 1;; n += step) {
    CAPTURE(n);
    jobs.clear();
    const auto seed = static_cast<std::uint32_t>(n);
    const bool died =
        testing::dies_at(n, death, seed, [&] { jobs.run(verb, jobs.careful(false)); });
    if (!died) return toll;
    ++toll.deaths;
    const bool published = jobs.is_published();
    toll.published += published;
    if (published && !jobs.is_right(verb)) ++toll.lost;
    const FaultySyscalls no_syncs;
    const TransformReport report = jobs.run(verb, jobs.careful(true));
    CHECK(report.was_complete == published);
    if (report.resumed) toll.tensors += report.resumed->tensors;
    if (report.resumed) CHECK(report.resumed->damaged == 0);
    if (!jobs.is_right(verb)) ++toll.lost;
    CHECK_FALSE(jobs.has_leftovers());
  }
}

TEST_CASE("a run that is killed at any system call is resumed to the right bytes") {
  const Jobs jobs;
  int deaths = 0;
  for (const Verb verb : {Verb::kSplit, Verb::kMerge, Verb::kReshard}) {
    CAPTURE(static_cast<int>(verb));
    const Toll toll = die_everywhere(jobs, verb, Death::kKilled, 2);
    CHECK(toll.lost == 0);
    CHECK(toll.tensors > toll.deaths);  // most finished work was not repeated
    deaths += toll.deaths;
  }
  MESSAGE("killed " << deaths << " times, lost 0");
  CHECK(deaths >= 200);
}

TEST_CASE("a run that a power cut ends at any system call is resumed to the right bytes") {
  const Jobs jobs;
  int deaths = 0;
  for (const Verb verb : {Verb::kSplit, Verb::kMerge, Verb::kReshard}) {
    CAPTURE(static_cast<int>(verb));
    const Toll toll = die_everywhere(jobs, verb, Death::kPowerCut, 3);
    CHECK(toll.lost == 0);
    CHECK(toll.tensors > 0);
    deaths += toll.deaths;
  }
  MESSAGE("power cut " << deaths << " times, lost 0");
}

/// Resumes after a disturbed run and checks the output.
void check_resumed(const Jobs& jobs, Verb verb) {
  if (jobs.is_published()) CHECK(jobs.is_right(verb));
  jobs.run(verb, jobs.careful(true));
  CHECK(jobs.is_right(verb));
}

TEST_CASE("a run in which a call fails once, anywhere, is resumed to the right bytes") {
  const Jobs jobs;
  int failed = 0;
  for (const Verb verb : {Verb::kSplit, Verb::kMerge, Verb::kReshard}) {
    for (const Call call : {Call::kPwrite, Call::kPreadv, Call::kFsync, Call::kFtruncate}) {
      for (int n = 1; failed >= 0; n += 3) {
        CAPTURE(static_cast<int>(verb));
        CAPTURE(static_cast<int>(call));
        CAPTURE(n);
        jobs.clear();
        FaultySyscalls faults;
        faults.fail(call, n, n % 2 == 0 ? EIO : ENOSPC);
        const auto error = testing::error_of([&] { return jobs.run(verb, jobs.careful(false)); });
        if (!error) break;
        ++failed;
        faults.heal();
        check_resumed(jobs, verb);
      }
    }
  }
  MESSAGE("failed " << failed << " times, lost 0");
  CHECK(failed > 100);
}

/// Runs until the flag is set; returns the error.
std::optional<Error> run_until(const std::atomic<bool>& cancel, const Jobs& jobs, Verb verb,
                               const WriteOptions& write) {
  const Interruptible scope(&cancel);
  return testing::error_of([&] { return jobs.run(verb, write); });
}

TEST_CASE("a run that is interrupted at a random moment is resumed to the right bytes") {
  const Jobs jobs;
  const FaultySyscalls no_syncs;
  std::mt19937 random(20261123);
  int interrupted = 0;
  for (int i = 0; i < 240; ++i) {
    const Verb verb = static_cast<Verb>(i % 3);
    CAPTURE(i);
    jobs.clear();
    std::atomic<bool> cancel = false;
    WriteOptions write = jobs.careful(false);
    write.resources.threads = 1 + static_cast<int>(random() % 4);
    const std::chrono::microseconds moment(random() % 30'000);
    std::jthread signal([&] {
      std::this_thread::sleep_for(moment);
      cancel = true;
    });
    interrupted += run_until(cancel, jobs, verb, write).has_value();
    check_resumed(jobs, verb);
  }
  MESSAGE("interrupted " << interrupted << " times, lost 0");
  CHECK(interrupted > 20);
}

/// Stops the run after `tensors` have begun and returns the error.
std::optional<Error> interrupt(const Jobs& jobs, Verb verb, bool resume = false) {
  FaultySyscalls faults;
  faults.fail(Call::kPwrite, 40, EIO);
  return testing::error_of([&] { return jobs.run(verb, jobs.careful(resume)); });
}

TEST_CASE("an I/O error keeps what is finished, says so, and resuming ends it") {
  const Jobs jobs;
  const auto error = interrupt(jobs, Verb::kSplit);
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kWriteFailed);
  CHECK(error->is_resumable());
  REQUIRE(error->notes().size() == 1);
  CHECK(error->notes()[0].first == "kept");
  CHECK_FALSE(jobs.is_published());
  CHECK(jobs.has_leftovers());
  const TransformReport report = jobs.run(Verb::kSplit, jobs.careful(true));
  REQUIRE(report.resumed);
  CHECK(report.resumed->tensors > 0);
  CHECK(jobs.is_right(Verb::kSplit));
  CHECK_FALSE(jobs.has_leftovers());
}

TEST_CASE("little that is finished is not worth keeping") {
  const Jobs jobs;
  FaultySyscalls faults;
  faults.fail(Call::kPwrite, 40, EIO);
  WriteOptions write = jobs.careful(false);
  write.worth_keeping = 64 << 20;
  const auto error = testing::error_of([&] { return jobs.run(Verb::kSplit, write); });
  REQUIRE(error);
  CHECK_FALSE(error->is_resumable());
  CHECK_FALSE(jobs.has_leftovers());
}

TEST_CASE("an interruption keeps what is finished, and may come again while resuming") {
  const Jobs jobs;
  std::atomic<bool> cancel = false;
  WriteOptions write = jobs.careful(false);
  write.resources.threads = 1;
  write.resources.on_progress = [&](const exec::Progress& progress) {
    if (progress.bytes_done > 0) cancel = true;
  };
  for (int i = 0; i < 3; ++i) {
    cancel = false;
    const auto error = run_until(cancel, jobs, Verb::kSplit, write);
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kInterrupted);
    CHECK(error->is_resumable());
    write.resume = true;
  }
  jobs.run(Verb::kSplit, jobs.careful(true));
  CHECK(jobs.is_right(Verb::kSplit));
}

TEST_CASE("damage to what was finished is found and written again") {
  const Jobs jobs;
  REQUIRE(interrupt(jobs, Verb::kSplit));
  for (const std::string& name : store::names_in(jobs.folder.path())) {
    if (!name.ends_with(".tmp")) continue;
    for (const std::string& file : store::names_in(jobs.folder / name)) {
      std::fstream data(jobs.folder / name + "/" + file, std::ios::in | std::ios::out);
      data.seekp(8192);
      data.put('!');
    }
  }
  const TransformReport report = jobs.run(Verb::kSplit, jobs.careful(true));
  REQUIRE(report.resumed);
  CHECK(report.resumed->damaged > 0);
  CHECK(jobs.is_right(Verb::kSplit));
}

TEST_CASE("nothing that an interrupted run left in its files is taken for data or padding") {
  const Jobs jobs;
  REQUIRE(interrupt(jobs, Verb::kSplit));
  for (const std::string& name : store::names_in(jobs.folder.path())) {
    if (!name.ends_with(".tmp")) continue;
    for (const std::string& file : store::names_in(jobs.folder / name)) {
      const std::string path = jobs.folder / name + "/" + file;
      const auto size = fs::file_size(path);
      std::ofstream(path, std::ios::binary) << std::string(size, '!');
    }
  }
  jobs.run(Verb::kSplit, jobs.careful(true));
  CHECK(jobs.is_right(Verb::kSplit));
}

TEST_CASE("a changed source, mapping or mesh is not resumed, and nothing is deleted") {
  const Jobs jobs;
  const std::string source = jobs.folder / "whole/model-00001-of-00002.safetensors";
  const auto check_refused = [&](std::string_view what) {
    const auto error =
        testing::error_of([&] { return jobs.run(Verb::kSplit, jobs.careful(true)); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kOtherRun);
    CHECK(error->message().find(what) != std::string::npos);
    CHECK(jobs.has_leftovers());
  };
  REQUIRE(interrupt(jobs, Verb::kSplit));
  const auto before = fs::last_write_time(source);
  fs::last_write_time(source, before + std::chrono::seconds(5));
  check_refused("the source changed");
  // The content may have changed meanwhile, which the change time reveals.
  fs::last_write_time(source, before);
  check_refused("the source changed");
  jobs.clear();
  REQUIRE(interrupt(jobs, Verb::kSplit));
  std::string other = kDisturbedMapping;
  other.replace(other.find("\"size\": 2"), 9, "\"size\": 4");
  jobs.folder.write("mapping.json", other);
  check_refused("the mapping, the mesh or an option changed");
  jobs.folder.write("mapping.json", kDisturbedMapping);
  jobs.run(Verb::kSplit, jobs.careful(true));
  CHECK(jobs.is_right(Verb::kSplit));
}

TEST_CASE("resuming with nothing begun runs, and with everything done there is nothing to do") {
  const Jobs jobs;
  const TransformReport first = jobs.run(Verb::kSplit, jobs.careful(true));
  CHECK(first.written);
  CHECK_FALSE(first.resumed);
  const auto time = fs::last_write_time(jobs.folder / "out/manifest.json");
  const TransformReport second = jobs.run(Verb::kSplit, jobs.careful(true));
  CHECK(second.was_complete);
  CHECK_FALSE(second.written);
  CHECK(fs::last_write_time(jobs.folder / "out/manifest.json") == time);
}

TEST_CASE("resuming a complete output deletes what an interrupted replacement of it has left") {
  const Jobs jobs;
  jobs.run(Verb::kSplit, jobs.careful(false));
  WriteOptions write = jobs.careful(false);
  write.force = true;
  const auto interrupt_split = [&] {
    FaultySyscalls faults;
    faults.fail(Call::kPwrite, 40, EIO);
    REQUIRE(testing::error_of([&] { return jobs.run(Verb::kSplit, write); }));
    REQUIRE(jobs.has_leftovers());
  };
  interrupt_split();
  write.resume = true;
  CHECK(jobs.run(Verb::kSplit, write).was_complete);
  CHECK(jobs.is_right(Verb::kSplit));
  CHECK_FALSE(jobs.has_leftovers());

  // A run that holds the lock may be at work there.
  write.resume = false;
  interrupt_split();
  write.resume = true;
  {
    const store::OutputClaim running(jobs.folder / "out", store::Existing::kReplace);
    const TransformReport report = jobs.run(Verb::kSplit, write);
    CHECK(report.was_complete);
    CHECK(report.warnings.empty());
  }
  REQUIRE(jobs.has_leftovers());

  // The finished tensors of another job stay, and are named.
  write.resume = false;
  jobs.run(Verb::kReshard, write);
  FaultySyscalls faults;
  faults.fail(Call::kPwrite, 40, EIO);
  REQUIRE(testing::error_of([&] { return jobs.run(Verb::kSplit, write); }));
  faults.heal();
  const TransformReport report = jobs.run(Verb::kReshard, jobs.careful(true));
  CHECK(report.was_complete);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings.front().find("has left '") != std::string::npos);
  CHECK(jobs.has_leftovers());
}

TEST_CASE("a complete output of another job is not taken for this one's") {
  const Jobs jobs;
  jobs.run(Verb::kReshard, jobs.careful(false));
  CHECK_ERROR(kOutputExists, jobs.run(Verb::kSplit, jobs.careful(true)));
  jobs.clear();
  jobs.run(Verb::kSplit, jobs.careful(false));
  fs::resize_file(jobs.folder / "out/model-rank-0-part-0.safetensors", 100);
  CHECK_ERROR(kOutputExists, jobs.run(Verb::kSplit, jobs.careful(true)));
}

TEST_CASE(
    "a run that replaces an output is resumed like any other, and the old one stays till then") {
  const Jobs jobs;
  jobs.run(Verb::kReshard, jobs.careful(false));
  FaultySyscalls faults;
  faults.fail(Call::kPwrite, 40, EIO);
  WriteOptions write = jobs.careful(false);
  write.force = true;
  REQUIRE(testing::error_of([&] { return jobs.run(Verb::kSplit, write); }));
  CHECK(jobs.is_right(Verb::kReshard));
  write.resume = true;
  CHECK(jobs.run(Verb::kSplit, write).resumed);
  CHECK(jobs.is_right(Verb::kSplit));
}

TEST_CASE("without --resume a run starts anew and deletes what was left") {
  const Jobs jobs;
  REQUIRE(interrupt(jobs, Verb::kSplit));
  CHECK_FALSE(jobs.run(Verb::kSplit, jobs.careful(false)).resumed);
  CHECK(jobs.is_right(Verb::kSplit));
  CHECK_FALSE(jobs.has_leftovers());
}

TEST_CASE("data that turned out wrong is not kept") {
  const Jobs jobs;
  std::fstream shard(jobs.folder / "split/model-rank-0-part-0.safetensors",
                     std::ios::in | std::ios::out);
  shard.seekp(-3, std::ios::end);
  shard.put('!');
  shard.close();
  const auto error = testing::error_of([&] { return jobs.run(Verb::kMerge, jobs.careful(false)); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kDataMismatch);
  CHECK_FALSE(jobs.has_leftovers());
}

}  // namespace
}  // namespace shardtool::api

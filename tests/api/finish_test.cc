// Shares of a run need no communication: in any number and order, interrupted or repeated anywhere,
// they write the bytes of a run without shares.

#include "lib/api/finish.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <thread>

#include "lib/store/local/output_claim.h"
#include "tests/api/disturbed_jobs.h"
#include "tests/api/ranks/share_runs.h"
#include "tests/support/dying_syscalls.h"
#include "tests/support/faulty_syscalls.h"
#include "tests/support/generators.h"
#include "tests/support/interleaved_syscalls.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;
using testing::Death;
using testing::FaultySyscalls;
using Content = std::map<std::string, std::string>;

constexpr auto kVerbs = {Verb::kSplit, Verb::kMerge, Verb::kReshard};

// The law over generated checkpoints and cuts.

/// A checkpoint, a mapping, and options, at random.
struct RandomRun {
  test::TempFolder folder;
  std::vector<std::string> rules;
  std::optional<Dtype> dtype;
  bool sha256 = false;
  i64 max_file_size = 0;

  RandomRun() {
    test::Tensors tensors;
    for (i64 t = *gen::between(1, 9); t > 0; --t) {
      const auto kind =
          *rc::gen::element<std::string>("rows", "columns", "norm", "padded", "zeroed");
      const std::string name = fmt::format("{}.{}", kind, t);
      const Dtype type = *rc::gen::element(Dtype::kBF16, Dtype::kF32);
      const Shape shape = {4 * *gen::between(1, 20), 4 * *gen::between(1, 30)};
      tensors[name] = test::numbered_tensor(name, type, shape);
    }
    test::write_checkpoint(folder / "whole", tensors, static_cast<int>(*gen::between(1, 2)));
    folder.write("whole/config.json", "{}");
    std::string mapping = kDisturbedMapping;
    mapping.insert(1, R"("unused_rule": "ignore", )");
    folder.write("mapping.json", mapping);
    if (*rc::gen::arbitrary<bool>()) dtype = Dtype::kF16;
    sha256 = *rc::gen::arbitrary<bool>();
    max_file_size = *rc::gen::element<i64>(50'000'000'000, 2000);
  }

  TransformReport run(Verb verb, const std::string& output, std::optional<Share> share) const {
    WriteOptions write;
    write.output = folder / output;
    write.share = share;
    write.sha256 = sha256;
    write.max_file_size = max_file_size;
    if (verb == Verb::kSplit) write.dtype = dtype;
    MappingChoice mapping;
    mapping.path = folder / "mapping.json";
    mapping.allow_empty_shards = true;
    if (verb == Verb::kSplit) return split({folder / "whole", mapping, {}, write});
    if (verb == Verb::kMerge) return merge({{folder / "split"}, true, write});
    mapping.mesh = mesh::Mesh({{"tp", 4}});
    return reshard({{folder / "split"}, mapping, {}, true, write});
  }
};

/// Runs all shares in a random order. Returns the number of them that say that they published.
int run_shuffled(const RandomRun& run, Verb verb, const std::string& output, int of) {
  std::vector<int> numbers(static_cast<size_t>(of));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (size_t i = 0; i + 1 < numbers.size(); ++i) {
    std::swap(
        numbers[i],
        numbers[static_cast<size_t>(*gen::between(static_cast<i64>(i), std::ssize(numbers) - 1))]);
  }
  int published = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const TransformReport report = run.run(verb, output, Share{numbers[i], of});
    RC_ASSERT(report.share.has_value());
    RC_ASSERT(report.share->missing.size() == numbers.size() - i - 1);
    published += report.share->published;
  }
  return published;
}

TEST_CASE("shares in any number and order write what one run writes, and the last publishes") {
  CHECK(rc::check("shares = one run", [] {
    const FaultySyscalls no_syncs;
    const RandomRun run;
    run.run(Verb::kSplit, "split", {});
    for (const Verb verb : kVerbs) {
      const std::string lone = fmt::format("lone{}", static_cast<int>(verb));
      run.run(verb, lone, {});
      const Content expected = test::folder_content(run.folder / lone);
      for (const int of : {1, 2, *rc::gen::element(4, 7, 64)}) {
        const std::string output = fmt::format("shares{}-{}", static_cast<int>(verb), of);
        RC_ASSERT(run_shuffled(run, verb, output, of) == 1);
        RC_ASSERT(test::folder_content(run.folder / output) == expected);
      }
    }
    for (const std::string& name : store::names_in(run.folder.path())) {
      RC_ASSERT(name.front() != '.');
    }
  }));
}

// Interruptions and repetitions, at every point.

TEST_CASE("a share that dies at any system call is run again alone") {
  const Jobs jobs;
  for (const Death death : {Death::kKilled, Death::kPowerCut}) {
    int deaths = 0;
    for (const Verb verb : kVerbs) {
      const auto dies = [&](int n) {
        jobs.clear();
        const int dying = n % 3;  // each of them, and after 0, 1 or 2 others
        for (int i = 0; i < n / 4 % 3; ++i) run_one(jobs, verb, {(dying + i + 1) % 3, 3});
        const auto seed = static_cast<std::uint32_t>(n);
        return testing::dies_at(n, death, seed, [&] { run_one(jobs, verb, {dying, 3}); });
      };
      deaths += for_each_death(4, dies, [&](int n) {
        if (jobs.is_published()) CHECK(jobs.is_right(verb));
        for (int i = 0; i < 3; ++i) run_one(jobs, verb, {(n + i) % 3, 3});
        CHECK(jobs.is_right(verb));
        CHECK(finish_out(jobs).was_complete);
      });
    }
    MESSAGE("died " << deaths << " times, lost 0");
    CHECK(deaths > 60);
  }
}

TEST_CASE("a finish that dies at any system call is done again") {
  const Jobs jobs;
  const auto dies = [&](int n) {
    jobs.clear();
    for (const int number : {0, 1}) run_one(jobs, Verb::kSplit, {number, 3});
    // The last share ends without publishing: another share holds the lock.
    {
      const store::OutputClaim busy(jobs.folder / "out", store::Existing::kRefuse,
                                    store::LockKind::kShared);
      const TransformReport report = run_one(jobs, Verb::kSplit, {2, 3});
      CHECK_FALSE(report.share->published);
      CHECK(report.share->missing.empty());
    }
    return testing::dies_at(n, Death::kKilled, 0, [&] { finish_out(jobs); });
  };
  const int deaths = for_each_death(1, dies, [&](int) {
    if (jobs.is_published()) CHECK(jobs.is_right(Verb::kSplit));
    finish_out(jobs);
    CHECK(jobs.is_right(Verb::kSplit));
  });
  CHECK(deaths > 20);
}

/// Errors that a process may end with because of another one, without harm to the output.
bool is_harmless(const std::optional<Error>& error) {
  return !error || error->code() == ErrorCode::kOutputLocked ||
         error->code() == ErrorCode::kShareMissing;
}

/// Runs the work and notes an error.
struct Outcome {
  std::optional<Error> error;

  void of(const std::function<void()>& work) {
    error = testing::error_of([&] { return work(), 0; });
  }
};

std::vector<std::string> hidden_names_of(const Jobs& jobs) {
  std::vector<std::string> names = store::names_in(jobs.folder.path());
  std::erase_if(names, [](const std::string& name) { return name.front() != '.'; });
  return names;
}

/// Lets `second` run at each of the system calls of `first`, after `before`, and then all shares.
int interleave_everywhere(const Jobs& jobs, const std::function<void()>& before,
                          const std::function<void()>& first, const std::function<void()>& second,
                          int step) {
  int schedules = 0;
  for (int n = 1;; n += step) {
    CAPTURE(n);
    jobs.clear();
    Outcome one;
    Outcome other;
    {
      const FaultySyscalls no_syncs;
      before();
    }
    if (!testing::interleave(
            n, [&] { one.of(first); }, [&] { other.of(second); })) {
      return schedules;
    }
    ++schedules;
    INFO((one.error ? one.error->message() : "no error"));
    INFO((other.error ? other.error->message() : "no error"));
    CHECK(is_harmless(one.error));
    CHECK(is_harmless(other.error));
    if (jobs.is_published()) CHECK(jobs.is_right(Verb::kSplit));
    const FaultySyscalls no_syncs;
    for (const int number : {0, 1}) run_one(jobs, Verb::kSplit, {number, 2});
    CHECK(jobs.is_right(Verb::kSplit));
    CHECK(hidden_names_of(jobs) == std::vector<std::string>{});
  }
}

TEST_CASE("another share, the same one again or a finish may run between any two system calls") {
  const Jobs jobs;
  const auto share = [&](int number) {
    return [&jobs, number] { run_one(jobs, Verb::kSplit, {number, 2}); };
  };
  const auto nothing = [] {};
  const auto publish = [&] { finish_out(jobs); };
  int schedules = 0;
  schedules += interleave_everywhere(jobs, nothing, share(0), share(1), 9);
  schedules += interleave_everywhere(jobs, nothing, share(1), share(1), 9);
  schedules += interleave_everywhere(jobs, share(0), share(1), share(1), 9);
  schedules += interleave_everywhere(jobs, share(1), share(0), share(1), 9);
  schedules += interleave_everywhere(jobs, share(1), share(0), publish, 9);
  MESSAGE("schedules: " << schedules);
  CHECK(schedules > 80);
}

TEST_CASE("shares and copies of them that run at the same time write the right bytes") {
  const Jobs jobs;
  const FaultySyscalls no_syncs;
  for (int round = 0; round < 10; ++round) {
    jobs.clear();
    std::vector<std::jthread> processes;
    std::vector<Outcome> outcomes(6);
    for (size_t p = 0; p < outcomes.size(); ++p) {
      processes.emplace_back([&, p] {
        outcomes[p].of([&] { run_one(jobs, Verb::kReshard, {static_cast<int>(p % 3), 3}); });
      });
    }
    processes.clear();
    for (const Outcome& outcome : outcomes) CHECK(is_harmless(outcome.error));
    finish_out(jobs);
    CHECK(jobs.is_right(Verb::kReshard));
    CHECK_FALSE(jobs.has_leftovers());
  }
}

TEST_CASE("a share in which a call fails once, anywhere, is run again alone") {
  const Jobs jobs;
  int failed = 0;
  for (const auto call : {testing::Call::kPwrite, testing::Call::kPreadv, testing::Call::kFsync,
                          testing::Call::kRename, testing::Call::kFallocate}) {
    for (int n = 1;; n += 3) {
      CAPTURE(static_cast<int>(call));
      CAPTURE(n);
      jobs.clear();
      FaultySyscalls faults;
      run_one(jobs, Verb::kSplit, {0, 2});
      faults.heal();
      faults.fail(call, n, EIO);
      const auto error = testing::error_of([&] { return run_one(jobs, Verb::kSplit, {1, 2}); });
      if (!error) break;
      ++failed;
      CHECK_FALSE(jobs.is_published());
      faults.heal();
      run_one(jobs, Verb::kSplit, {1, 2});
      CHECK(jobs.is_right(Verb::kSplit));
    }
  }
  CHECK(failed > 20);
}

TEST_CASE("a share that ran twice misses no share after the other has published") {
  const Jobs jobs;
  const FaultySyscalls no_syncs;
  const std::string id(32, '0');  // the records of a run are gone once it is published
  FinishOptions options;
  options.output = jobs.folder / "out";
  CHECK(finish_if_last(options, id, 2).missing == std::vector{0, 1});
  CHECK_FALSE(finish_if_last(options, id, 2).published);
  for (const int number : {0, 1}) run_one(jobs, Verb::kSplit, {number, 2});
  const LastShare last = finish_if_last(options, id, 2);
  CHECK(last.published);
  CHECK(last.missing.empty());
}

TEST_CASE("a share of a published output has nothing to do, and a second finish neither") {
  const Jobs jobs;
  const FaultySyscalls no_syncs;
  for (const int number : {0, 1}) run_one(jobs, Verb::kSplit, {number, 2});
  const auto time = fs::last_write_time(jobs.folder / "out/manifest.json");
  CHECK(run_one(jobs, Verb::kSplit, {1, 2}).was_complete);
  const FinishReport report = finish_out(jobs, true);
  CHECK(report.was_complete);
  CHECK(report.tensors == 22);
  CHECK(report.bytes_verified.value_or(0) > 0);
  CHECK(fs::last_write_time(jobs.folder / "out/manifest.json") == time);
  fs::resize_file(jobs.folder / "out/model-rank-1-part-0.safetensors", 100);
  CHECK_ERROR(kFileMissing, finish_out(jobs));
  fs::remove(jobs.folder / "out/model-rank-1-part-0.safetensors");
  CHECK_ERROR(kFileMissing, finish_out(jobs));
}

TEST_CASE("an output that exists is replaced with force only, when all shares have ended") {
  const Jobs jobs;
  const FaultySyscalls no_syncs;
  jobs.run(Verb::kReshard, jobs.careful(false));
  CHECK_ERROR(kOutputExists, run_one(jobs, Verb::kSplit, {0, 2}));
  WriteOptions write = share_options(jobs, {0, 2});
  write.force = true;
  jobs.run(Verb::kSplit, write);
  CHECK(jobs.is_right(Verb::kReshard));
  write.share = {1, 2};
  CHECK(jobs.run(Verb::kSplit, write).share->published);
  CHECK(jobs.is_right(Verb::kSplit));
  CHECK_FALSE(jobs.has_leftovers());
}

TEST_CASE("a run without shares takes up what shares have finished") {
  const Jobs jobs;
  const FaultySyscalls no_syncs;
  run_one(jobs, Verb::kSplit, {0, 2});
  const TransformReport report = jobs.run(Verb::kSplit, jobs.careful(true));
  REQUIRE(report.resumed);
  CHECK(report.resumed->tensors > 0);
  CHECK(jobs.is_right(Verb::kSplit));
  CHECK_FALSE(jobs.has_leftovers());
}

TEST_CASE("shares of another number take up what is finished") {
  const Jobs jobs;
  const FaultySyscalls no_syncs;
  run_one(jobs, Verb::kSplit, {0, 2});
  const TransformReport report = run_one(jobs, Verb::kSplit, {0, 3});
  REQUIRE(report.resumed);
  CHECK(report.resumed->tensors > 0);
  for (const int number : {1, 2}) run_one(jobs, Verb::kSplit, {number, 3});
  CHECK(jobs.is_right(Verb::kSplit));
}

TEST_CASE("with --verify a share reads its part back, and the one that publishes all parts") {
  const Jobs jobs;
  const FaultySyscalls no_syncs;
  std::vector<i64> verified;
  for (const int number : {0, 1, 2}) {
    WriteOptions write = share_options(jobs, {number, 3});
    write.verify = true;
    verified.push_back(jobs.run(Verb::kSplit, write).bytes_verified.value_or(0));
  }
  FinishOptions whole;
  whole.output = jobs.folder / "out";
  whole.verify = true;
  const i64 all = finish(whole).bytes_verified.value_or(0);
  CHECK(verified.back() == all);
  CHECK(verified[0] + verified[1] < all);
  CHECK(verified[0] + verified[1] > all / 2);
}

TEST_CASE("tied tensors that differ are found although they are in different shares") {
  const FaultySyscalls no_syncs;
  const test::TempFolder folder;
  test::Tensors tensors;
  for (const std::string name : {"a", "b"}) {
    tensors[name] = test::distinct_tensor({name, Dtype::kF32, {8, 8}});
  }
  test::write_checkpoint(folder / "whole", tensors);
  MappingChoice mapping;
  mapping.path = folder.write("mapping.json", R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
    "tied": [["a", "b"]], "rules": [{"match": "*", "strategy": "rowwise"}]})");
  WriteOptions write;
  write.output = folder / "out";
  write.share = {0, 2};
  split({folder / "whole", mapping, {}, write});
  write.share = {1, 2};
  CHECK_ERROR(kTied, split({folder / "whole", mapping, {}, write}));
}

}  // namespace
}  // namespace shardtool::api

// `validate --engine nccl` from launch to verdict on machines without a GPU. A test library
// replaces NCCL, and each process is a thread whose GPU is a thread with its own memory.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/device/device.h"
#include "lib/api/demo.h"
#include "lib/comm/agreement.h"
#include "lib/comm/engine.h"
#include "lib/engine/validation.h"
#include "tests/support/emulated_accelerator.h"
#include "tests/support/fake_nccl.h"
#include "tests/support/throws.h"
#include "tests/validate/compared.h"
#include "tests/validate/mutations/mutations.h"

namespace shardtool::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Returns the environment of the process with this rank, as torchrun sets it.
std::optional<comm::Launch> launch_of(int rank, int processes) {
  return comm::detect_launch([&](const std::string& name) -> std::optional<std::string> {
    if (name == "RANK") return std::to_string(rank);
    if (name == "WORLD_SIZE") return std::to_string(processes);
    if (name == "TORCHELASTIC_RUN_ID") return "job";
    return std::nullopt;
  });
}

/// Runs `part` in every process, and returns the error of each.
template <class Part>
std::vector<std::optional<Error>> errors_of_processes(int processes, const Part& part) {
  std::vector<std::optional<Error>> errors(static_cast<size_t>(processes));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < processes; ++rank) {
    threads.emplace_back([&, rank] {
      errors[static_cast<size_t>(rank)] = testing::error_of([&] { return part(rank), 0; });
    });
  }
  threads.clear();
  return errors;
}

comm::EngineChoice nccl_engine(int rank, int processes, const TempFolder& folder) {
  comm::EngineChoice engine;
  engine.engine = comm::Engine::kNccl;
  engine.nccl = {kFakeNccl, kFakeNccl};
  engine.launch = launch_of(rank, processes);
  engine.meeting.folder = folder.path();
  return engine;
}

api::ValidateOptions on_nccl(const api::ValidateOptions& of_all, int rank, int processes,
                             const TempFolder& folder) {
  api::ValidateOptions options = of_all;
  options.engine = nccl_engine(rank, processes, folder);
  return options;
}

api::ValidateOptions compared_with_model(const std::string& model, const std::string& shards) {
  api::ValidateOptions options;
  options.sources = {shards};
  options.reference = model_folder(model);
  options.resources.threads = 1;
  return options;
}

struct Played {
  const char* model;
  const char* mesh;
  int processes;  ///< number of processes that share the devices
};

TEST_CASE("processes over NCCL's calls, one device or several each, have one process' digest") {
  if (!has_fake_nccl()) return;
  const auto samples = std::to_array<Played>({{"prototype", "tp=4", 4},
                                              {"prototype", "tp=4", 2},
                                              {"prototype", "tp=4", 3},
                                              {"mixtral", "ep=2,tp=2", 2},
                                              {"llama", "pp=2,tp=2", 2},
                                              {"phi3", "dp=2,tp=2", 3}});
  for (const auto& [model, mesh, processes] : samples) {
    CAPTURE(model);
    CAPTURE(processes);
    const TempFolder folder;
    const auto options = compared_with_model(model, split_copy(model, mesh, folder));
    const api::ValidateReport on_cpu = api::validate(options);
    const auto before = turn<std::uint64_t>("fake_nccl_bytes");
    std::vector<api::ValidateReport> reports(static_cast<size_t>(processes));
    const auto errors = errors_of_processes(processes, [&](int rank) {
      EmulatedAccelerator accelerator(EmulatedAccelerator::Pace::kEager);
      api::ValidateOptions own = on_nccl(options, rank, processes, folder);
      own.accelerators = {&accelerator};
      reports[static_cast<size_t>(rank)] = api::validate(own);
      CHECK(accelerator.works() > 0);
    });
    for (const auto& error : errors) CHECK_MESSAGE(!error, error->message());
    CHECK(turn<std::uint64_t>("fake_nccl_bytes") > before);
    for (const api::ValidateReport& report : reports) {
      CHECK(report.outcome == engine::Outcome::kPass);
      CHECK(report.engine == "nccl");
      CHECK(report.digest == on_cpu.digest);
      CHECK(report.accelerators.size() == static_cast<size_t>(processes));
      CHECK_FALSE(report.collectives.empty());
      REQUIRE(report.collectives.size() == on_cpu.collectives.size());
      for (size_t i = 0; i < report.collectives.size(); ++i) {
        CHECK(report.collectives[i].agrees());
        CHECK(report.collectives[i].counted == on_cpu.collectives[i].counted);
        CHECK(report.collectives[i].counted_elements == on_cpu.collectives[i].counted_elements);
      }
    }
  }
}

/// Runs `options` in processes over NCCL's calls, each with an accelerator.
std::vector<api::ValidateReport> reports_over_nccl(const api::ValidateOptions& options,
                                                   int processes, const TempFolder& folder) {
  std::vector<api::ValidateReport> reports(static_cast<size_t>(processes));
  const auto errors = errors_of_processes(processes, [&](int rank) {
    EmulatedAccelerator accelerator(EmulatedAccelerator::Pace::kEager);
    api::ValidateOptions own = on_nccl(options, rank, processes, folder);
    own.accelerators = {&accelerator};
    reports[static_cast<size_t>(rank)] = api::validate(own);
  });
  for (const auto& error : errors) CHECK_MESSAGE(!error, error->message());
  return reports;
}

/// Bytes of the native run's all_reduces, as the report counts them for one group of devices.
i64 native_bytes_reduced(const api::ValidateReport& report) {
  i64 bytes = 0;
  for (const engine::CollectiveRow& row : report.collectives) {
    CHECK(row.agrees());
    if (row.tier != engine::TierKind::kNative || row.move != plan::Move::kAllReduce) continue;
    CHECK(row.element_bytes == bits(*parse_dtype(report.native_type)) / 8);
    bytes += row.counted_elements * row.element_bytes;
  }
  return bytes;
}

TEST_CASE("the native run's sums are NCCL's own, with the bytes that the report counts") {
  if (!has_fake_nccl()) return;
  struct Case {
    const char* model;
    const char* mesh;
    int processes;
    int groups;   ///< groups of devices with several processes
    int in_each;  ///< processes in each
  };
  const auto samples = std::to_array<Case>({{"prototype", "tp=4", 4, 1, 4},
                                            {"prototype", "tp=4", 2, 1, 2},
                                            {"phi3", "dp=2,tp=2", 4, 2, 2},
                                            {"phi3", "dp=2,tp=2", 2, 0, 0}});
  for (const auto& [model, mesh, processes, groups, in_each] : samples) {
    CAPTURE(model);
    CAPTURE(processes);
    const TempFolder folder;
    auto options = compared_with_model(model, split_copy(model, mesh, folder));
    const int before = turn<int>("fake_nccl_sums");
    const auto exact = reports_over_nccl(options, processes, folder);
    CHECK(turn<int>("fake_nccl_sums") == before);
    options.native = true;
    const api::ValidateReport on_cpu = api::validate(options);
    const auto summed = turn<std::uint64_t>("fake_nccl_bytes_summed");
    const auto reports = reports_over_nccl(options, processes, folder);
    const i64 bytes = native_bytes_reduced(reports[0]);
    CHECK(bytes > 0);
    CHECK(turn<std::uint64_t>("fake_nccl_bytes_summed") - summed ==
          static_cast<std::uint64_t>(bytes * groups * in_each));
    for (const api::ValidateReport& report : reports) {
      CHECK(report.outcome == engine::Outcome::kPass);
      CHECK(report.digest == exact[0].digest);
      CHECK(report.tiers.back().kind == engine::TierKind::kNative);
      CHECK(report.tiers.back().rounding < 2 * on_cpu.tiers.back().rounding);
      CHECK(report.tiers.back().worst > 0.5 * on_cpu.tiers.back().worst);
      CHECK(report.tiers.back().worst < 2 * on_cpu.tiers.back().worst);
    }
  }
}

TEST_CASE("the demo over NCCL's calls multiplies on every process' accelerator") {
  if (!has_fake_nccl()) return;
  const TempFolder folder;
  api::DemoRunOptions on_cpu;
  on_cpu.ranks = 2;
  const api::DemoRunReport expected = api::run_demo(on_cpu);
  std::array<api::DemoRunReport, 2> reports;
  const auto before = turn<std::uint64_t>("fake_nccl_bytes");
  const auto errors = errors_of_processes(2, [&](int rank) {
    api::DemoRunOptions own;
    own.engine = nccl_engine(rank, 2, folder);
    own.open_accelerator = [](int) {
      return std::make_unique<EmulatedAccelerator>(EmulatedAccelerator::Pace::kLate);
    };
    reports[static_cast<size_t>(rank)] = api::run_demo(own);
  });
  for (const auto& error : errors) CHECK_MESSAGE(!error, error->message());
  CHECK(turn<std::uint64_t>("fake_nccl_bytes") > before);
  for (const api::DemoRunReport& report : reports) {
    CHECK(report.engine == "nccl");
    CHECK(report.backend == "emulated");
    CHECK(report.accelerators == std::vector<std::string>(2, "a thread"));
    CHECK(report.demo.passed);
    REQUIRE(report.demo.rows.size() == expected.demo.rows.size());
    for (size_t i = 0; i < report.demo.rows.size(); ++i) {
      CHECK(report.demo.rows[i].worst == expected.demo.rows[i].worst);
      CHECK(report.demo.rows[i].collectives == expected.demo.rows[i].collectives);
    }
  }
}

TEST_CASE("the demo over NCCL without a GPU is an error in every process, and not the CPU's") {
  if (!has_fake_nccl() || kernels::device_state().count > 0) return;
  const TempFolder folder;
  const auto errors = errors_of_processes(2, [&](int rank) {
    api::DemoRunOptions own;
    own.engine = nccl_engine(rank, 2, folder);
    api::run_demo(own);
  });
  for (const auto& error : errors) {
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kEngineMissing);
    CHECK(error->message().find("there is no GPU to compute on") != std::string::npos);
  }
}

TEST_CASE("a fault is told by all processes over NCCL's calls, in one process' words") {
  if (!has_fake_nccl()) return;
  const auto rows = attention_mutations();
  const Mutation& row = rows.front();
  const TempFolder folder;
  const ShardSet shards(split_copy(row.model, row.mesh, folder));
  row.apply(shards);
  const auto options = compared_with_model(row.model, shards.folder());
  const api::ValidateReport on_cpu = api::validate(options);
  REQUIRE_FALSE(on_cpu.faults.empty());
  std::array<api::ValidateReport, 2> reports;
  const auto errors = errors_of_processes(2, [&](int rank) {
    EmulatedAccelerator accelerator(EmulatedAccelerator::Pace::kLate);
    api::ValidateOptions own = on_nccl(options, rank, 2, folder);
    own.accelerators = {&accelerator};
    reports[static_cast<size_t>(rank)] = api::validate(own);
  });
  for (const auto& error : errors) CHECK_FALSE(error);
  for (const api::ValidateReport& report : reports) {
    CHECK(report.outcome == engine::Outcome::kFail);
    CHECK(report.digest == on_cpu.digest);
    REQUIRE(report.faults.size() == on_cpu.faults.size());
    CHECK(report.faults[0].rank == on_cpu.faults[0].rank);
  }
  // Only the first process reads the bytes for the diagnosis.
  CHECK(reports[0].faults[0].diagnosis == on_cpu.faults[0].diagnosis);
}

TEST_CASE("an accelerator that fails in one process ends all, by its name and at once") {
  if (!has_fake_nccl()) return;
  const TempFolder folder;
  const auto options = compared_with_model("prototype", split_copy("prototype", "tp=4", folder));
  const auto start = steady_clock::now();
  const auto errors = errors_of_processes(3, [&](int rank) {
    EmulatedAccelerator accelerator(
        EmulatedAccelerator::Pace::kEager,
        {rank == 1 ? PlannedFailure::Call::kWork : PlannedFailure::Call::kNone, 5});
    api::ValidateOptions own = on_nccl(options, rank, 3, folder);
    own.accelerators = {&accelerator};
    api::validate(own);
  });
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    REQUIRE(errors[rank]);
    CAPTURE(errors[rank]->message());
    CHECK(errors[rank]->exit_status() == 6);
    CHECK(errors[rank]->code() == ErrorCode::kDeviceFailed);
    CHECK(errors[rank]->message().find("the GPU failed: as the test planned") != std::string::npos);
    CHECK(testing::has_note(*errors[rank], "process", "1 of 3"));
  }
  CHECK(steady_clock::now() - start < std::chrono::seconds(20));
}

TEST_CASE("NCCL that stops in the midst of a validation is cut off after the deadline") {
  if (!has_fake_nccl()) return;
  const TempFolder folder;
  const Compared model(model_folder("prototype"), split_copy("prototype", "tp=4", folder));
  const int aborts_before = turn<int>("fake_nccl_aborts");
  const auto start = steady_clock::now();
  const auto errors = errors_of_processes(2, [&](int rank) {
    const auto comm = comm::connect(nccl_engine(rank, 2, folder));
    comm->set_deadline(milliseconds(500), milliseconds(500));
    EmulatedAccelerator accelerator(EmulatedAccelerator::Pace::kEager);
    engine::ValidationOptions options;
    options.resources.threads = 1;
    options.accelerators = {&accelerator};
    options.resources.on_progress = [&](const exec::Progress& progress) {
      if (progress.item.starts_with("step 3 ")) turn<void>("fake_nccl_stalls", true);
    };
    comm::run_or_abort(
        *comm, [&] { engine::validate(model.whole(), model.shards(), comm.get(), options); });
  });
  turn<void>("fake_nccl_stalls", false);
  for (const auto& error : errors) {
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kPeerLost);
    CHECK(error->exit_status() == 6);
    CHECK(error->message().find("NCCL did not end") != std::string::npos);
  }
  CHECK(turn<int>("fake_nccl_aborts") == aborts_before + 2);
  CHECK(steady_clock::now() - start < std::chrono::seconds(20));
}

TEST_CASE("nccl with the library and without a GPU is an error in every process") {
  if (!has_fake_nccl() || kernels::device_state().count > 0) return;
  const TempFolder folder;
  const auto options = compared_with_model("prototype", split_copy("prototype", "tp=2", folder));
  const auto errors =
      errors_of_processes(2, [&](int rank) { api::validate(on_nccl(options, rank, 2, folder)); });
  for (const auto& error : errors) {
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kEngineMissing);
    CHECK(error->message().find("there is no GPU to compute on") != std::string::npos);
  }
}

}  // namespace
}  // namespace shardtool::test

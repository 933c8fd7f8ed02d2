// An accelerator computes the same as the CPU: same digest, verdict and messages. A thread with its
// own memory replaces a GPU.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "kernels/device/device.h"
#include "lib/api/transform.h"
#include "tests/support/emulated_accelerator.h"
#include "tests/support/fake_cublaslt.h"
#include "tests/support/throws.h"
#include "tests/validate/mutations/mutations.h"

namespace shardtool::test {
namespace {

using Pace = EmulatedAccelerator::Pace;

/// Returns the report's text without times and devices.
std::string said(const api::ValidateReport& report) {
  std::string text = fmt::format("{} {} {} {}\n", to_text(report.outcome), report.digest,
                                 report.bytes_read, report.coverage);
  for (const api::ValidateTier& tier : report.tiers) {
    text += fmt::format("{} {} {} {}", to_text(tier.kind), to_text(tier.outcome), tier.checked,
                        tier.mismatches);
    if (tier.outcome == engine::Outcome::kPass) text += fmt::format(" {}", tier.worst);
    text += "\n";
  }
  for (const engine::Fault& fault : report.faults) {
    text += fmt::format("{} {} {} {} {} {}: {}\n", to_text(fault.tier), fault.layer, fault.value,
                        fault.rank, fault.token, fault.feature, fault.diagnosis);
  }
  for (const std::string& note : report.notes) text += note + "\n";
  return text;
}

api::ValidateOptions against_model(const std::string& model, const std::string& shards) {
  api::ValidateOptions options;
  options.sources = {shards};
  options.reference = model_folder(model);
  options.resources.threads = 1;
  return options;
}

/// Compares the reports of the CPU and of the accelerator.
void check_same(api::ValidateOptions options, Pace pace) {
  options.accelerators.clear();
  const api::ValidateReport on_cpu = api::validate(options);
  CHECK(on_cpu.accelerators.empty());
  EmulatedAccelerator accelerator(pace);
  options.accelerators = {&accelerator};
  const api::ValidateReport there = api::validate(options);
  CHECK(said(there) == said(on_cpu));
  CHECK(accelerator.allocations() == 0);
  if (there.digest.empty()) return;  // the headers determined the verdict
  CHECK(there.backend == "emulated");
  CHECK(there.accelerators == std::vector<std::string>{"a thread"});
  CHECK(accelerator.works() > 0);
  CHECK(accelerator.copied_bytes() > there.bytes_read);
}

struct Sample {
  const char* model;
  const char* mesh;
};

TEST_CASE("an accelerator gives the CPU's digest and verdict on every family") {
  const auto samples = std::to_array<Sample>({{"prototype", "tp=4"},
                                              {"97 words", "tp=4"},
                                              {"gemma", "tp=2"},
                                              {"gpt2", "tp=2"},
                                              {"bert", "tp=2"},
                                              {"gpt_neox", "tp=2"},
                                              {"mixtral", "ep=2,tp=2"},
                                              {"gpt_oss", "ep=2,tp=2"},
                                              {"deepseek_v3", "ep=2,tp=2"},
                                              {"deepseek_v32", "tp=2"},
                                              {"dbrx", "ep=2,tp=2"},
                                              {"qwen3_next", "ep=2,tp=2"},
                                              {"mamba2_one_group", "tp=2"},
                                              {"qwen2_moe", "pp=2,tp=2"},
                                              {"phi3", "dp=2,tp=2"},
                                              {"llama", "pp=2,tp=2"}});
  Pace pace = Pace::kLate;
  for (const auto& [model, mesh] : samples) {
    CAPTURE(model);
    const TempFolder folder;
    api::ValidateOptions options = against_model(model, split_copy(model, mesh, folder));
    options.native = true;
    options.ordered = true;
    check_same(options, pace);
    pace = pace == Pace::kLate ? Pace::kEager : Pace::kLate;
  }
}

TEST_CASE("an accelerator multiplies chunk by chunk for all ranks that gather a matrix") {
  for (const char* model : {"llama", "prototype"}) {
    CAPTURE(model);
    const TempFolder folder;
    api::SplitOptions split;
    split.source = model_folder(model);
    split.mapping.mesh = mesh::parse_mesh("fsdp=3,tp=2");
    split.mapping.settings = {{"axes.embed", "fsdp"}, {"axes.embed.uneven", "chunk"}};
    split.write.output = folder / "parts";
    api::split(split);
    api::ValidateOptions options = against_model(model, split.write.output);
    options.native = true;
    options.resources.max_memory = 50'000;  // makes chunks of a few rows
    check_same(options, Pace::kLate);
    check_same(options, Pace::kEager);
  }
}

const api::ValidateTier& native_tier(const api::ValidateReport& report) {
  const auto row =
      std::ranges::find(report.tiers, engine::TierKind::kNative, &api::ValidateTier::kind);
  REQUIRE(row != report.tiers.end());
  return *row;
}

/// Returns the report of a native run with this library. Its rounding is about that of the CPU's
/// run.
api::ValidateReport native_report(api::ValidateOptions options, const std::string& library,
                                  Pace pace, api::ValidateTier& tier_on_cpu) {
  options.native = true;
  const api::ValidateReport on_cpu = api::validate(options);
  CHECK(on_cpu.libraries.empty());
  tier_on_cpu = native_tier(on_cpu);
  EmulatedAccelerator accelerator(pace, {}, library);
  options.accelerators = {&accelerator};
  api::ValidateReport there = api::validate(options);
  CHECK(there.outcome == on_cpu.outcome);
  CHECK(there.digest == on_cpu.digest);
  CHECK(native_tier(there).worst > 0.5 * tier_on_cpu.worst);
  CHECK(native_tier(there).worst < 2 * tier_on_cpu.worst);
  CHECK(native_tier(there).rounding > 0);
  CHECK(native_tier(there).rounding < 3 * tier_on_cpu.rounding);
  return there;
}

TEST_CASE("products of the native run are the library's, and no others") {
  if (!has_fake_cublaslt()) return;
  const auto samples = std::to_array<Sample>({{"prototype", "tp=4"},
                                              {"gpt2", "tp=2"},
                                              {"gpt_oss", "ep=2,tp=2"},
                                              {"deepseek_v3", "ep=2,tp=2"},
                                              {"llama", "pp=2,tp=2"}});
  Pace pace = Pace::kLate;
  for (const auto& [model, mesh] : samples) {
    CAPTURE(model);
    const TempFolder folder;
    api::ValidateOptions options = against_model(model, split_copy(model, mesh, folder));
    options.resources.max_memory = 100'000;  // makes chunks of a few rows
    const int before = turn<int>(kFakeCublasLt, "fake_cublaslt_multiplied");
    api::ValidateTier on_cpu;
    const auto report = native_report(options, kFakeCublasLt, pace, on_cpu);
    const int multiplied = turn<int>(kFakeCublasLt, "fake_cublaslt_multiplied") - before;
    CHECK(report.libraries == std::vector<std::string>{"cuBLASLt 13.1.2 (" + kFakeCublasLt + ")"});
    CHECK(report.native.library > 0);
    CHECK(report.native.kernels == 0);
    CHECK(multiplied >= report.native.library);
    options.quick = true;
    EmulatedAccelerator accelerator(pace, {}, kFakeCublasLt);
    options.accelerators = {&accelerator};
    CHECK(api::validate(options).outcome == engine::Outcome::kPass);
    CHECK(turn<int>(kFakeCublasLt, "fake_cublaslt_multiplied") - before == multiplied);
    pace = pace == Pace::kLate ? Pace::kEager : Pace::kLate;
  }
}

TEST_CASE("what the library does not have, and all without it, our kernels multiply, and say so") {
  const TempFolder folder;
  api::ValidateTier on_cpu;
  if (has_fake_cublaslt()) {
    const auto scaled = native_report(against_model("fp8", split_copy("fp8", "tp=2", folder)),
                                      kFakeCublasLt, Pace::kEager, on_cpu);
    CHECK(scaled.native.library > 0);
    CHECK(scaled.native.kernels > 0);
  }
  const TempFolder plain_folder;
  const auto plain = against_model("prototype", split_copy("prototype", "tp=2", plain_folder));
  const auto without = native_report(plain, "/nowhere/libcublasLt.so", Pace::kEager, on_cpu);
  REQUIRE(without.libraries.size() == 1);
  CHECK(without.libraries[0].starts_with("none: "));
  CHECK(without.native.library == 0);
  CHECK(without.native.kernels > 0);
  CHECK(native_tier(without).worst == on_cpu.worst);
  CHECK(native_tier(without).rounding == on_cpu.rounding);
}

TEST_CASE("a library that fails ends a native run with what it says") {
  if (!has_fake_cublaslt()) return;
  const TempFolder folder;
  api::ValidateOptions options =
      against_model("prototype", split_copy("prototype", "tp=2", folder));
  options.native = true;
  for (const char* call : {"cublasLtCreate", "cublasLtMatmul"}) {
    EmulatedAccelerator accelerator(Pace::kLate, {}, kFakeCublasLt);
    options.accelerators = {&accelerator};
    turn<void>(kFakeCublasLt, "fake_cublaslt_fails", call);
    const auto error = testing::error_of([&] { return api::validate(options); });
    turn<void>(kFakeCublasLt, "fake_cublaslt_fails", "");
    REQUIRE(error);
    CHECK(error->exit_status() == 6);
    CHECK(error->message() == "the GPU failed: cuBLASLt says a planned failure");
  }
}

TEST_CASE("an accelerator multiplies with scaled weights as the CPU does") {
  for (const char* model : {"fp8", "fp8 per row"}) {
    CAPTURE(model);
    const TempFolder folder;
    check_same(against_model(model, split_copy(model, "tp=2", folder)), Pace::kLate);
  }
}

TEST_CASE("chunks of a few rows, and of less than one, pass through an accelerator") {
  const TempFolder folder;
  api::ValidateOptions options =
      against_model("prototype", split_copy("prototype", "tp=4", folder));
  for (const i64 bytes : {1, 4'000, 100'000}) {
    options.resources.max_memory = bytes;
    for (const Pace pace : {Pace::kLate, Pace::kEager}) check_same(options, pace);
  }
}

TEST_CASE("within a layer no value leaves an accelerator") {
  for (const char* const model : {"llama", "gpt2", "phi3", "gemma"}) {
    CAPTURE(model);
    const TempFolder folder;
    api::ValidateOptions options = against_model(model, split_copy(model, "tp=2", folder));
    options.native = true;
    EmulatedAccelerator accelerator(Pace::kLate, {}, kFakeCublasLt);
    options.accelerators = {&accelerator};
    // Number of copies to the host so far, at every product of a layer.
    std::map<std::string, std::set<i64>> downloads;
    options.resources.on_progress = [&](const exec::Progress& progress) {
      downloads[progress.item].insert(accelerator.downloads());
    };
    CHECK(api::validate(options).outcome == engine::Outcome::kPass);
    CHECK(downloads.size() > 2);
    for (const auto& [layer, counts] : downloads) {
      CAPTURE(layer);
      CHECK(counts.size() == 1);
    }
    CHECK(downloads.rbegin()->second != downloads.begin()->second);
  }
}

TEST_CASE("faults are found by an accelerator as by the CPU, in the same words") {
  for (const auto& rows : {attention_mutations(), feed_forward_mutations(), value_mutations(),
                           family_mutations(), benign_mutations()}) {
    for (size_t i = 0; i < rows.size(); i += 3) {
      CAPTURE(rows[i].number);
      const TempFolder folder;
      const ShardSet shards(split_copy(rows[i].model, rows[i].mesh, folder));
      rows[i].apply(shards);
      api::ValidateOptions options = against_model(rows[i].model, shards.folder());
      if (rows[i].options) rows[i].options(options);
      check_same(options, Pace::kEager);
    }
  }
}

TEST_CASE("processes with an accelerator each give the digest of one process without") {
  const TempFolder folder;
  api::ValidateOptions options =
      against_model("prototype", split_copy("prototype", "tp=4", folder));
  const api::ValidateReport on_cpu = api::validate(options);
  std::array<api::ValidateReport, 2> reports;
  {
    std::vector<std::jthread> processes;
    for (int rank = 0; rank < 2; ++rank) {
      processes.emplace_back([&, own = options, rank]() mutable {
        EmulatedAccelerator accelerator(rank == 0 ? Pace::kLate : Pace::kEager);
        own.engine.launch = comm::Launch{"mpirun", rank, 2, "job"};
        own.engine.meeting.folder = folder.path();
        own.accelerators = {&accelerator};
        reports[static_cast<size_t>(rank)] = api::validate(own);
      });
    }
  }
  for (const api::ValidateReport& report : reports) {
    CHECK(report.outcome == engine::Outcome::kPass);
    CHECK(report.digest == on_cpu.digest);
    CHECK(report.accelerators == std::vector<std::string>(2, "a thread"));
  }
}

TEST_CASE("accelerators of one process share its ranks and give the CPU's digest and verdict") {
  for (const auto& [model, mesh] : std::to_array<Sample>({{"prototype", "tp=4"},
                                                          {"gpt_oss", "ep=2,tp=2"},
                                                          {"qwen2_moe", "pp=2,tp=2"},
                                                          {"fp8", "tp=2"}})) {
    CAPTURE(model);
    const TempFolder folder;
    api::ValidateOptions options = against_model(model, split_copy(model, mesh, folder));
    options.native = true;
    options.resources.max_memory = 200'000;
    const api::ValidateReport on_cpu = api::validate(options);
    EmulatedAccelerator first(Pace::kLate), second(Pace::kEager), third(Pace::kLate);
    options.accelerators = {&first, &second, &third};
    const api::ValidateReport there = api::validate(options);
    CHECK(said(there) == said(on_cpu));
    CHECK(there.accelerators == std::vector<std::string>{"a thread, a thread, a thread"});
    for (const EmulatedAccelerator* one : {&first, &second}) {
      CHECK(one->works() > 0);
      CHECK(one->allocations() == 0);
    }
    CHECK((third.works() > 0) == (std::string(mesh) != "tp=2"));
  }
}

TEST_CASE("an error of one of several accelerators ends a validation") {
  const TempFolder folder;
  api::ValidateOptions options =
      against_model("prototype", split_copy("prototype", "tp=4", folder));
  EmulatedAccelerator first(Pace::kLate);
  EmulatedAccelerator second(Pace::kLate, {PlannedFailure::Call::kWork, 3});
  options.accelerators = {&first, &second};
  CHECK_ERROR(kDeviceFailed, api::validate(options));
  CHECK(first.allocations() == 0);
  CHECK(second.allocations() == 0);
}

TEST_CASE("a failure of an accelerator ends a validation with its name, whatever call it is") {
  using Call = PlannedFailure::Call;
  const TempFolder folder;
  api::ValidateOptions options =
      against_model("prototype", split_copy("prototype", "tp=2", folder));
  for (const Call call : {Call::kAllocate, Call::kAllocateHost, Call::kCopy, Call::kWork}) {
    for (const int after : {0, 4}) {
      EmulatedAccelerator accelerator(Pace::kEager, {call, after});
      options.accelerators = {&accelerator};
      const auto error = testing::error_of([&] { return api::validate(options); });
      REQUIRE(error);
      CHECK(error->code() == ErrorCode::kDeviceFailed);
      CHECK(error->message() == "the GPU failed: as the test planned");
      CHECK(error->exit_status() == 6);
      CHECK(accelerator.allocations() == 0);
    }
  }
}

TEST_CASE("gpu-virtual without a GPU is an error that says why, and never the CPU's answer") {
  const TempFolder folder;
  api::ValidateOptions options =
      against_model("prototype", split_copy("prototype", "tp=2", folder));
  options.gpu_virtual = true;
  const kernels::DeviceState state = kernels::device_state();
  if (state.count > 0) return;
  const auto error = testing::error_of([&] { return api::validate(options); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kEngineMissing);
  CHECK(error->exit_status() == 6);
  CHECK(error->notes().at(0).second == state.reason);
  options.engine.launch = comm::Launch{"mpirun", 0, 2, "job"};
  CHECK_ERROR(kUsage, api::validate(options));
}

TEST_CASE("a GPU is asked for before the model is opened") {
  if (kernels::device_state().count > 0) return;
  api::ValidateOptions options;
  options.sources = {"/nowhere/shards"};
  options.reference = "/nowhere/model";
  options.gpu_virtual = true;
  CHECK_ERROR(kEngineMissing, api::validate(options));
}

TEST_CASE("gpu-virtual on a GPU gives the CPU's digest and verdict") {
  const kernels::DeviceState state = kernels::device_state();
  if (state.count == 0) {
    std::printf("SKIPPED: no GPU: %s\n", state.reason.c_str());
    return;
  }
  for (const char* model : {"prototype", "gpt_oss", "deepseek_v3", "fp8"}) {
    CAPTURE(model);
    const TempFolder folder;
    api::ValidateOptions options = against_model(model, split_copy(model, "tp=2", folder));
    options.native = true;
    const api::ValidateReport on_cpu = api::validate(options);
    options.gpu_virtual = true;
    const api::ValidateReport there = api::validate(options);
    CHECK(there.digest == on_cpu.digest);
    CHECK(there.outcome == on_cpu.outcome);
    CHECK(there.backend == "cuda");
    CHECK(there.native.library + there.native.kernels > 0);
    if (there.libraries.at(0).starts_with("none: ")) CHECK(there.native.library == 0);
  }
}

}  // namespace
}  // namespace shardtool::test

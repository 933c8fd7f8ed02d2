#include "lib/comm/launch.h"

#include <doctest/doctest.h>

#include <map>

#include "lib/base/error.h"
#include "tests/support/throws.h"

namespace shardtool::comm {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<Launch> detect(const Variables& variables) {
  return detect_launch([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST_CASE("each launcher is known by what it sets for its processes") {
  struct Case {
    std::string launcher;
    Variables variables;
  };
  const std::vector<Case> cases{
      {"mpirun", {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}},
      {"mpirun", {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}},
      {"srun",
       {{"SLURM_PROCID", "1"},
        {"SLURM_STEP_NUM_TASKS", "4"},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_JOB_ID", "77"}}},
      {"torchrun", {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"TORCHELASTIC_RUN_ID", "none"}}},
  };
  for (const Case& test : cases) {
    CAPTURE(test.launcher);
    const auto launch = detect(test.variables);
    REQUIRE(launch);
    CHECK(launch->launcher == test.launcher);
    CHECK(launch->rank == 1);
    CHECK(launch->size == 4);
  }
}

TEST_CASE("a batch script, a cluster's container and a launch of one are no launch") {
  CHECK_FALSE(detect({}));
  CHECK_FALSE(detect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "77"}}));
  CHECK_FALSE(detect({{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}}));
  CHECK_FALSE(detect({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}));
}

TEST_CASE(
    "variables of processes that no known launcher set are refused, with what makes a launch") {
  const auto refusal = [](const Variables& variables) {
    return testing::error_of([&] {
      refuse_unknown_launch([&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      });
    });
  };
  Variables variables{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}};
  const auto error = refusal(variables);
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUsage);
  CHECK(error->help_lines().front().find("export TORCHELASTIC_RUN_ID=") != std::string::npos);
  variables["TORCHELASTIC_RUN_ID"] = "NAME";
  CHECK(detect(variables));
  CHECK_FALSE(refusal({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  CHECK_FALSE(refusal({{"WORLD_SIZE", "2"}}));
}

TEST_CASE("a launch of more processes than there are is refused by the name of its variable") {
  for (const char* size : {"65537", "2147483647"}) {
    const auto error = testing::error_of([&] {
      return detect({{"RANK", "1"}, {"WORLD_SIZE", size}, {"TORCHELASTIC_RUN_ID", "none"}});
    });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kLimit);
    CHECK(error->message().find("WORLD_SIZE is " + std::string(size)) != std::string::npos);
  }
  CHECK(detect({{"RANK", "1"}, {"WORLD_SIZE", "65536"}, {"TORCHELASTIC_RUN_ID", "none"}}));
}

TEST_CASE("processes of one launch have one job, those of two have two") {
  const auto job = [](const char* rank, const char* step) {
    return detect({{"SLURM_PROCID", rank},
                   {"SLURM_STEP_NUM_TASKS", "4"},
                   {"SLURM_STEP_ID", step},
                   {"SLURM_JOB_ID", "77"}})
        ->job;
  };
  CHECK(job("0", "1") == job("3", "1"));
  CHECK(job("0", "1") != job("0", "2"));
}

TEST_CASE("a launch carries its secret, and the address of its first process") {
  const auto launch = detect({{"OMPI_COMM_WORLD_RANK", "1"},
                              {"OMPI_COMM_WORLD_SIZE", "4"},
                              {"MASTER_ADDR", "n1"},
                              {"MASTER_PORT", "7"},
                              {"SHARDTOOL_SECRET", "a secret of this launch"}});
  REQUIRE(launch);
  CHECK(launch->secret == "a secret of this launch");
  CHECK(launch->master == "n1:7");
}

TEST_CASE("numbers that are none are refused") {
  for (const char* rank : {"-1", "x", "", "4", "1.0"}) {
    CAPTURE(rank);
    CHECK_ERROR(kUsage, detect({{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", "4"}}));
  }
}

}  // namespace
}  // namespace shardtool::comm

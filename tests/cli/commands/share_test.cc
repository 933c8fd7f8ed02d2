#include <doctest/doctest.h>

#include <map>

#include "cli/args/share_args.h"
#include "lib/base/error.h"

namespace shardtool::cli {
namespace {

using Variables = std::map<std::string, std::string>;

/// The share as text; "none", or "error: " and the message.
std::string share_text(const std::optional<std::string>& typed, const Variables& variables) {
  const auto environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  try {
    const auto share = to_share(typed, environment);
    return share ? api::format_share(*share) : "none";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    return "error: " + error.message();
  }
}

TEST_CASE("a share is typed, or numbered by one scheduler") {
  const Variables none;
  const Variables array = {{"SLURM_ARRAY_TASK_ID", "3"},
                           {"SLURM_ARRAY_TASK_COUNT", "8"},
                           {"SLURM_ARRAY_TASK_MIN", "0"},
                           {"SLURM_ARRAY_TASK_STEP", "1"}};
  const Variables part_of_array = {
      {"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_ARRAY_TASK_COUNT", "2"}, {"SLURM_ARRAY_TASK_MIN", "3"}};
  const Variables mpirun = {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
  const Variables one_process = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}};
  struct Row {
    std::optional<std::string> typed;
    Variables variables;
    std::string expected;
  };
  const std::vector<Row> rows = {
      {{}, none, "none"},
      {{}, array, "none"},
      {{}, mpirun, "1/4"},
      {{}, one_process, "none"},
      {"3/8", none, "3/8"},
      {"3/8", mpirun, "3/8"},
      {"0/1", none, "0/1"},
      {"auto", array, "3/8"},
      {"auto/16", array, "3/16"},
      {"auto/8", part_of_array, "3/8"},
      {"auto", mpirun, "1/4"},
      {"auto/8", {{"JOB_COMPLETION_INDEX", "7"}}, "7/8"},
      {"auto", {{"RANK", "1"}, {"WORLD_SIZE", "2"}}, "1/2"},
      {"auto", {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, "1/2"},
      {"auto",
       {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_ID", "0"}},
       "1/2"},
      {"auto", part_of_array, "error: SLURM_ARRAY_TASK_ID does not say how many shares there are"},
      {"auto", none, "error: no scheduler numbers this process"},
      {"8/8", none, "error: there is no share 8 of 8"},
      {"auto/2", part_of_array, "error: there is no share 3 of 2"},
      {"3", none, "error: --share 3 does not say of how many"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.expected);
    CHECK(share_text(row.typed, row.variables) == row.expected);
  }
  Variables both = array;
  both.insert(mpirun.begin(), mpirun.end());
  CHECK(share_text("auto", both) == "error: mpirun and SLURM_ARRAY_TASK_ID number this process");
  for (const char* const wrong :
       {"", "/", "x/3", "1/x", "-1/3", "1/0", "0/65537", "auto/", "1/2/3"}) {
    CAPTURE(wrong);
    CHECK(share_text(wrong, none).starts_with("error: "));
  }
}

}  // namespace
}  // namespace shardtool::cli

#include "cli/args/share_args.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "cli/size_argument.h"
#include "lib/base/error.h"

namespace shardtool::cli {
namespace {

constexpr std::string_view kFlag = "--share";
constexpr std::string_view kAuto = "auto";

/// Number that a scheduler gives to this process, and how many it numbers, if known.
struct Numbered {
  std::string by;  ///< the variable
  i64 number = 0;
  std::optional<i64> count = {};
  std::string help = "give their number, such as --share auto/8";  ///< if the count is not known
};

std::optional<i64> number_in(const comm::Environment& environment, const std::string& name) {
  const auto text = environment(name);
  if (!text) return std::nullopt;
  return parse_count(name, *text, 0, api::kMostShares);
}

/// Counts an array only if its numbers are 0, 1, 2 and so on.
std::optional<Numbered> array_task(const comm::Environment& environment) {
  const auto number = number_in(environment, "SLURM_ARRAY_TASK_ID");
  if (!number) return std::nullopt;
  Numbered task{"SLURM_ARRAY_TASK_ID", *number};
  const bool is_plain = environment("SLURM_ARRAY_TASK_MIN").value_or("0") == "0" &&
                        environment("SLURM_ARRAY_TASK_STEP").value_or("1") == "1";
  if (is_plain) {
    task.count = number_in(environment, "SLURM_ARRAY_TASK_COUNT");
  } else {
    task.help = "number the tasks from 0, such as --array=0-7, or " + task.help;
  }
  return task;
}

Numbered only_scheduler(const comm::Environment& environment) {
  std::vector<Numbered> found;
  const auto launch = comm::detect_launch(environment);
  if (launch) found.push_back({launch->launcher, launch->rank, launch->size});
  if (const auto task = array_task(environment)) found.push_back(*task);
  if (const auto index = number_in(environment, "JOB_COMPLETION_INDEX")) {
    found.push_back({"JOB_COMPLETION_INDEX", *index});
  }
  if (const auto rank = launch ? std::nullopt : number_in(environment, "RANK")) {
    found.push_back({"RANK", *rank, number_in(environment, "WORLD_SIZE")});
  }
  if (found.size() == 1) return found.front();
  std::vector<std::string> names;
  for (const Numbered& one : found) names.push_back(one.by);
  Error error(ErrorCode::kUsage,
              found.empty() ? std::string("no scheduler numbers this process")
                            : fmt::format("{} number this process", fmt::join(names, " and ")));
  if (found.empty()) {
    error.note("looked for",
               "mpirun, srun, torchrun, SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, and RANK with "
               "WORLD_SIZE");
  }
  throw std::move(error).help("give the share itself, such as --share 3/8");
}

api::Share checked_share(i64 number, i64 count) {
  if (number < count) return {static_cast<int>(number), static_cast<int>(count)};
  throw Error(ErrorCode::kUsage, fmt::format("there is no share {} of {}", number, count))
      .help(fmt::format("shares are numbered from 0 to {}", count - 1));
}

}  // namespace

std::optional<api::Share> to_share(const std::optional<std::string>& typed,
                                   const comm::Environment& environment) {
  if (!typed) {
    const auto launch = comm::detect_launch(environment);
    return launch ? std::optional(checked_share(launch->rank, launch->size)) : std::nullopt;
  }
  const size_t slash = typed->find('/');
  const std::string number = typed->substr(0, slash);
  std::optional<i64> count;
  if (slash != typed->npos) {
    count = parse_count(kFlag, std::string_view(*typed).substr(slash + 1), 1, api::kMostShares);
  }
  if (number != kAuto) {
    const i64 own = parse_count(kFlag, number, 0, api::kMostShares);
    if (count) return checked_share(own, *count);
    throw Error(ErrorCode::kUsage, fmt::format("--share {} does not say of how many", *typed))
        .help(fmt::format("such as --share {}/8", *typed));
  }
  const Numbered task = only_scheduler(environment);
  if (!count) count = task.count;
  if (count) return checked_share(task.number, *count);
  throw Error(ErrorCode::kUsage, fmt::format("{} does not say how many shares there are", task.by))
      .help(task.help);
}

std::vector<std::string> words_without_share(const std::vector<std::string>& words) {
  std::vector<std::string> kept;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool has_value_behind = words[i] == kFlag;
    const bool is_share = has_value_behind || words[i].starts_with(std::string(kFlag) + "=");
    if (!is_share) kept.push_back(words[i]);
    i += has_value_behind;
  }
  return kept;
}

}  // namespace shardtool::cli

#include "lib/api/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <thread>

#include "lib/api/planning/machine_rates.h"
#include "lib/api/transfer/scratch_folder.h"
#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/base/text.h"
#include "lib/comm/call_time.h"
#include "lib/comm/engine.h"
#include "lib/comm/reduce.h"

namespace shardtool::api {
namespace {

using plan::CollectiveOp;

struct MeasuredOp {
  CollectiveOp op;
  comm::Operation operation;
};
constexpr std::array<MeasuredOp, 6> kOps{
    {{CollectiveOp::kPermute, comm::Operation::kSend},
     {CollectiveOp::kBroadcast, comm::Operation::kBroadcast},
     {CollectiveOp::kAllGather, comm::Operation::kAllGather},
     {CollectiveOp::kReduceScatter, comm::Operation::kReduceScatter},
     {CollectiveOp::kAllReduce, comm::Operation::kAllReduce},
     {CollectiveOp::kAllToAll, comm::Operation::kAllToAll}}};
constexpr std::array<i64, 5> kPayloads{1 << 10, 16 << 10, 256 << 10, 2 << 20, 16 << 20};

plan::Timing timing_of(comm::Communicator& group, const MeasuredOp& measured, i64 nodes,
                       i64 rounds) {
  plan::TimeTable points;
  for (const i64 bytes : kPayloads) {
    points.emplace_back(bytes,
                        measured_digits(comm::call_us(group, measured.operation, bytes, rounds)));
  }
  return {measured.op, group.size(), nodes, plan::rising(std::move(points))};
}

/// Message costs: latency of the smallest message, bandwidth from the difference of the largest
/// two.
plan::Messages messages_of(const plan::TimeTable& table, i64 domain) {
  const auto& [bytes, us] = table.back();
  const auto& [fewer_bytes, fewer_us] = table[table.size() - 2];
  const double more_us = us > fewer_us ? us - fewer_us : us;
  return {domain, table.front().second,
          measured_digits(static_cast<double>(bytes - fewer_bytes) / more_us / 1e3)};
}

/// Number of distinct machines of the first `count` ranks.
i64 machines(const std::vector<std::string>& hosts, i64 count) {
  return std::ssize(std::set<std::string>(hosts.begin(), hosts.begin() + count));
}

/// 2, 4, ..., and all ranks.
std::vector<int> group_sizes(int ranks) {
  std::vector<int> sizes;
  for (int size = 2; size < ranks; size *= 2) sizes.push_back(size);
  sizes.push_back(ranks);
  return sizes;
}

class Calibration {
 public:
  Calibration(const CalibrateOptions& options, comm::Communicator& comm)
      : options_(options), comm_(comm), hosts_(comm.all_gather(host_name())) {
    if (comm.rank() == 0) require_space(options.folder, 2 * options.bytes);
  }

  plan::HardwareProfile run() {
    plan::HardwareProfile profile;
    profile.name = options_.name;
    const i64 here = std::count(hosts_.begin(), hosts_.end(), host_name());
    const i64 threads = std::max<i64>(1, std::thread::hardware_concurrency() / here);
    profile.memory_bytes = least(memory_bytes() / here);
    profile.usable_bytes = profile.memory_bytes;
    comm_.barrier();
    profile.memory_gb_per_s = measured_digits(least(copy_gb_per_s(threads, options_.rounds)));
    comm_.barrier();
    profile.rates.bf16_tflops = measured_digits(least(product_tflops(threads, options_.rounds)));
    if (comm_.rank() == 0) {
      profile.storage = storage_times({options_.folder, options_.bytes, options_.rounds});
    }
    comm_.barrier();
    measure_calls(profile);
    profile.fabric = messages_of(profile.timings.front().us_of_bytes, least(here));
    profile.network_gb_per_s = std::get<plan::Messages>(profile.fabric).gb_per_s;
    profile.measured = plan::Measured{today(), host_class()};
    return profile;
  }

 private:
  template <class Number>
  Number least(Number mine) {
    comm::all_reduce<Number>(comm_, std::span(&mine, 1),
                             [](Number a, Number b) { return std::min(a, b); });
    return mine;
  }

  void measure_calls(plan::HardwareProfile& profile) {
    for (const int size : group_sizes(comm_.size())) {
      const int color = comm_.rank() < size ? 0 : -1;
      const auto group = comm_.split(color, comm_.rank());
      for (const MeasuredOp& measured : kOps) {
        if (group == nullptr) continue;
        check_interrupted();
        profile.timings.push_back(
            timing_of(*group, measured, machines(hosts_, size), options_.rounds));
      }
      comm_.barrier();
    }
  }

  const CalibrateOptions& options_;
  comm::Communicator& comm_;
  std::vector<std::string> hosts_;
};

void describe(std::string_view engine, int ranks, plan::HardwareProfile& profile) {
  const i64 nodes = profile.timings.back().nodes;
  profile.description = fmt::format("{} of the {} engine on {}, measured at the same time",
                                    plural(ranks, "rank"), engine, plural(nodes, "machine"));
  profile.source = {
      "shardtool plan profile calibrate; a device is a rank with its share of the processors and "
      "of the memory, the slowest rank counts",
      "memory.gb_per_s: memcpy beyond the caches, bytes read and written",
      "dense_tflops.bf16: shardtool's own GEMMs of bf16 weights with floats",
      "storage: direct I/O where there is some, writes with their sync; by one rank",
      nodes > 1 ? "network_gb_per_s: messages between all ranks, each to the next"
                : "network_gb_per_s: of the messages on this one machine; no network was measured"};
}

void check(const CalibrateOptions& options, int ranks) {
  if (ranks < 2) {
    throw Error(ErrorCode::kUsage, "a single rank cannot send messages")
        .help("start several with mpirun, srun or torchrun, or leave --engine and --ranks out");
  }
  if (options.bytes < kLeastCalibrated) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} are too few to measure, expected {} or more",
                            format_bytes(options.bytes), format_bytes(kLeastCalibrated)));
  }
}

}  // namespace

plan::HardwareProfile calibrate(const CalibrateOptions& options) {
  const bool embedded = options.engine.chosen() == comm::Engine::kEmbedded;
  const int ranks = options.engine.ranks(options.ranks);
  comm::before_meeting(options.engine, [&] { check(options, ranks); });
  plan::HardwareProfile profile;
  comm::run_ranks(options.engine, ranks, [&](comm::Communicator& comm) {
    plan::HardwareProfile mine = Calibration(options, comm).run();
    describe(comm::name_of(options.engine.chosen()), ranks, mine);
    // Rank 0 alone has measured the files.
    const std::string text = comm.all_gather(comm.rank() == 0 ? plan::to_json(mine) : "").front();
    if (!embedded || comm.rank() == 0)
      profile = plan::decode_profile(text, "the profile of rank 0");
  });
  return profile;
}

}  // namespace shardtool::api

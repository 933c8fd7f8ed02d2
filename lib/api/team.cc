#include "lib/api/team.h"

#include <algorithm>
#include <chrono>

#include "kernels/xxh3/xxh3.h"
#include "lib/comm/agreement.h"
#include "lib/comm/tcp/tcp_communicator.h"
#include "lib/store/local/output_place.h"

namespace shardtool::api {
namespace {

constexpr std::chrono::milliseconds kWatchInterval{50};

std::unique_ptr<comm::Communicator> communicator(const WriteOptions& options) {
  if (!options.launch || options.dry_run) return std::make_unique<comm::SoloCommunicator>();
  const comm::Launch& launch = *options.launch;
  const std::string job = kernels::xxh3_hex(std::as_bytes(std::span(launch.job)));
  const store::OutputPlace place = store::look_at_output(options.output);
  auto comm = comm::meet(place.hidden("-" + job + ".meeting"), launch.rank, launch.size,
                         comm::kMeetingTime, comm::Reach::kFirst, options.resources.cancel);
  comm::require_same_options(*comm, launch);
  // No deadline: a process that has moved its share may wait hours for the others.
  comm->set_deadline(comm::kForever, comm::kForever);
  return comm;
}

}  // namespace

Team::Team(const WriteOptions& options)
    : comm_(communicator(options)),
      interrupted_(options.resources.cancel),
      cancel_(options.resources.cancel) {
  if (size() == 1) return;
  cancel_ = &stopped_;
  watcher_ = std::jthread([this](const std::stop_token& done) { watch(done); });
}

Team::~Team() = default;

void Team::all_do(const std::function<void()>& part) {
  comm::all_do(*comm_, part);
}

i64 Team::sum(i64 mine) {
  i64 total = 0;
  for (const std::string& one : comm_->all_gather(std::to_string(mine))) total += std::stoll(one);
  return total;
}

void Team::watch(const std::stop_token& done) {
  while (!done.stop_requested()) {
    if (interrupted_ != nullptr && *interrupted_) comm_->raise_stop();
    if (comm_->stop_was_raised()) stopped_ = true;
    std::this_thread::sleep_for(kWatchInterval);
  }
}

WorkShares summarize_shares(std::span<const exec::TensorMove> moves, std::span<const int> owners,
                            int processes) {
  std::vector<i64> bytes(static_cast<size_t>(processes));
  for (size_t i = 0; i < moves.size(); ++i) {
    bytes[static_cast<size_t>(owners[i])] += byte_size(moves[i].dtype, moves[i].shape).value_or(0);
  }
  const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
  return {processes, *least, *most};
}

std::vector<int> share_out(std::span<const exec::TensorMove> moves, std::span<const size_t> order,
                           int processes) {
  const auto bytes = [&](size_t i) {
    return static_cast<double>(byte_size(moves[i].dtype, moves[i].shape).value_or(0));
  };
  double total = 0;
  for (const size_t i : order) total += bytes(i);
  std::vector<int> owners(moves.size());
  double before = 0;
  for (const size_t i : order) {
    const double middle = before + bytes(i) / 2;
    const int owner = total > 0 ? static_cast<int>(middle / total * processes) : 0;
    owners[i] = std::min(owner, processes - 1);
    before += bytes(i);
  }
  return owners;
}

}  // namespace shardtool::api

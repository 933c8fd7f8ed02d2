#pragma once

#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernels/device/launch.h"
#include "kernels/device/team.h"
#include "tests/kernels/machine.h"

namespace shardtool::kernels {

/// Runs the lanes of a team one after another, each until it waits for the others: warps in any
/// order between two waits of the team, lanes in any order between two waits of their warp. So a
/// lane that reads what another one has not written yet reads it too early. Throws logic_error if
/// lanes do not wait for the same.
class LaneRun {
 public:
  LaneRun(int count, bool descends)
      : descends_(descends), lanes_(static_cast<size_t>(count)), posted_(lanes_.size()) {}

  void run(std::function<void()> body) {
    body_ = std::move(body);
    current_run() = this;
    for (Lane& lane : lanes_) {
      lane.stack.resize(kStackBytes);
      getcontext(&lane.context);
      lane.context.uc_stack.ss_sp = lane.stack.data();
      lane.context.uc_stack.ss_size = lane.stack.size();
      lane.context.uc_link = &schedule_;
      makecontext(&lane.context, &LaneRun::begin, 0);
    }
    const size_t warps = lanes_.size() / kWarpLanes;
    do {
      for (size_t w = 0; w < warps; ++w) run_warp(placed(w, warps) * kWarpLanes);
      require_same(0, lanes_.size());
    } while (lanes_.front().state != State::kDone);
  }

  enum class State { kInWarp, kInTeam, kDone };
  void wait(State state) {
    Lane& lane = lanes_[current_];
    lane.state = state;
    swapcontext(&lane.context, &schedule_);
  }
  int count() const { return static_cast<int>(lanes_.size()); }
  size_t lane() const { return current_; }
  std::array<std::byte, 8>& posted(size_t lane) { return posted_[lane]; }
  std::byte* slots() { return slots_.data(); }

 private:
  static constexpr size_t kStackBytes = size_t{1} << 16;
  struct Lane {
    ucontext_t context{};
    std::vector<std::byte> stack;
    State state = State::kInTeam;
  };

  static LaneRun*& current_run() {
    static thread_local LaneRun* run = nullptr;
    return run;
  }
  static void begin() {
    LaneRun& run = *current_run();
    run.body_();
    run.lanes_[run.current_].state = State::kDone;
  }
  size_t placed(size_t i, size_t count) const { return descends_ ? count - 1 - i : i; }
  void run_warp(size_t first) {
    do {
      for (size_t l = 0; l < kWarpLanes; ++l) {
        current_ = first + placed(l, kWarpLanes);
        swapcontext(&schedule_, &lanes_[current_].context);
      }
      require_same(first, first + kWarpLanes);
    } while (lanes_[first].state == State::kInWarp);
  }
  void require_same(size_t begin, size_t end) const {
    for (size_t l = begin; l < end; ++l) {
      if (lanes_[l].state != lanes_[begin].state) throw std::logic_error("lanes diverge");
    }
  }

  bool descends_;
  std::vector<Lane> lanes_;
  std::vector<std::array<std::byte, 8>> posted_;
  std::array<std::byte, size_t{8} * kMostLanes / kWarpLanes> slots_{};
  std::function<void()> body_;
  ucontext_t schedule_{};
  size_t current_ = 0;
};

/// Lanes of a LaneTeam, as the threads of a GPU.
class EmulatedLanes {
 public:
  explicit EmulatedLanes(LaneRun& run) : run_(&run), lane_(run.lane()) {}

  int count() const { return run_->count(); }
  int lane() const { return static_cast<int>(lane_); }
  template <class T>
  T other(T x, int apart) const {
    std::memcpy(run_->posted(lane_).data(), &x, sizeof x);
    run_->wait(LaneRun::State::kInWarp);
    std::memcpy(static_cast<void*>(&x), run_->posted(lane_ ^ static_cast<size_t>(apart)).data(),
                sizeof x);
    run_->wait(LaneRun::State::kInWarp);
    return x;
  }
  template <class T>
  T* slots() const {
    return reinterpret_cast<T*>(run_->slots());
  }
  void sync() const { run_->wait(LaneRun::State::kInTeam); }

 private:
  LaneRun* run_;
  size_t lane_;
};

/// Calls use(team) in every lane.
template <class Use>
void use_lanes(int lanes, bool descends, const Use& use) {
  LaneRun run(lanes, descends);
  run.run([&] { use(LaneTeam(EmulatedLanes(run))); });
}

/// Sum of every `apart`-th of the numbers from `first` on: those with an even place in this row and
/// those with an odd one, each summed in the same way.
template <class T>
T sum_of_every(const std::vector<T>& numbers, size_t first, size_t apart) {
  if (apart >= numbers.size()) return numbers[first];
  return sum_of_every(numbers, first, 2 * apart) + sum_of_every(numbers, first + apart, 2 * apart);
}

/// The sum of a team in the order that kernels/device/team.h defines, written independently.
template <class T>
T sum_in_lanes(const std::vector<T>& numbers, int lanes) {
  constexpr size_t kWarp = 32;
  std::vector<T> of_warps;
  for (size_t warp = 0; warp < static_cast<size_t>(lanes); warp += kWarp) {
    std::vector<T> own(kWarp);
    for (size_t l = 0; l < kWarp; ++l) {
      for (size_t k = warp + l; k < numbers.size(); k += static_cast<size_t>(lanes)) {
        own[l] += numbers[k];
      }
    }
    of_warps.push_back(sum_of_every(own, 0, 1));
  }
  return sum_of_every(of_warps, 0, 1);
}

/// A host on which teams have as many threads as on a GPU.
class LaneMachine : public HostMachine {
 public:
  template <class Work>
  void run(const Work& work) {
    if constexpr (TeamWork<Work>) {
      for (i64 i = 0; i < work.count(); ++i) {
        use_lanes(work.lanes(), i % 2 == 1, [&](const auto& team) { work(i, team); });
      }
    } else {
      HostMachine::run(work);
    }
  }
};

}  // namespace shardtool::kernels

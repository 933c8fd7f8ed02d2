#pragma once

#include "tests/kernels/machine.h"
#include "tests/kernels/threads/block_on_host.h"

// After the names of CUDA that they need.
#include "kernels/device/team.cuh"
#include "kernels/product/product_launch.cuh"

namespace shardtool::kernels {

/// Calls use(team) in every lane of a team, in an order of this seed.
template <class Use>
void use_lanes(int lanes, std::uint64_t seed, const Use& use) {
  blockDim = {static_cast<unsigned>(lanes)};
  gpu_on_host::BlockOnHost(lanes, seed).run([&] {
    use(LaneTeam(gpu_on_host::ThreadLanes(lanes)));
  });
}

/// Runs kernels whose threads work together on the host.
class BlockMachine : public HostMachine {
 public:
  template <class Work>
  void run(const Work& work) {
    if constexpr (TeamWork<Work>) {
      if (work.count() > 0) gpu_on_host::run_teams(work, nullptr);
    } else {
      HostMachine::run(work);
    }
  }
  template <class T>
  void multiply_rows(const StoredMatrix& w, NumberMap map, RowView<const T> x, RowView<T> y) {
    gpu_on_host::multiply_in_blocks<gpu_on_host::Rows, T>({w, x, y, nullptr}, map);
  }
  template <class T>
  void multiply_rows(const StoredMatrix& w, RowView<const T> x, RowView<T> y) {
    multiply_rows(w, NumberMap::kBits, x, y);
  }
  template <class T>
  void add_columns(const StoredMatrix& w, NumberMap map, RowView<const T> x, RowView<T> y) {
    gpu_on_host::multiply_in_blocks<gpu_on_host::Columns, T>({w, x, y, nullptr}, map);
  }
  template <class T>
  void add_columns(const StoredMatrix& w, RowView<const T> x, RowView<T> y) {
    add_columns(w, NumberMap::kBits, x, y);
  }
};

}  // namespace shardtool::kernels

#include "lib/plan/training.h"

#include "lib/base/error.h"
#include "lib/plan/byte_count.h"

namespace shardtool::plan {

i64 zero_state_bytes(i64 parameters, int stage, i64 ranks, TrainingState state) {
  if (stage < 0 || stage > 3 || ranks < 1)
    throw Error(ErrorCode::kInternal, "a ZeRO stage is 0 to 3, over one rank or more");
  const auto share = [&](i64 bytes, int partitioned_from) {
    const i64 all = times(parameters, bytes);
    return stage >= partitioned_from ? ceil_div(all, ranks) : all;
  };
  i64 sum = share(state.weight, 3);
  add_bytes(sum, share(state.gradient, 2));
  add_bytes(sum, share(state.optimizer, 1));
  return sum;
}

}  // namespace shardtool::plan

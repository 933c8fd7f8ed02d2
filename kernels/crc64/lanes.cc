#include <cstring>

#include "kernels/crc64/folding.inc"

namespace shardtool::kernels {
namespace {

/// 64 bytes of the message in four registers.
class FourLanes {
 public:
  class Factor {
   public:
    explicit Factor(WordPair d) : value_(to_register(d)) {}

   private:
    friend class FourLanes;
    LaneRegister value_;
  };

  static FourLanes zero() { return {}; }

  static FourLanes load(const std::byte* at) {
    FourLanes block;
    for (int i = 0; i < 4; ++i) block.lanes_[i] = load_lane(at + 16 * i);
    return block;
  }

  static FourLanes load_last(const std::byte* at, std::int64_t bytes) {
    if (bytes == kBlockBytes) return load(at);
    std::byte padded[kBlockBytes] = {};
    std::memcpy(padded + kBlockBytes - bytes, at, static_cast<size_t>(bytes));
    return load(padded);
  }

  FourLanes folded(const Factor& by) const {
    FourLanes block;
    for (int i = 0; i < 4; ++i) block.lanes_[i] = folded(lanes_[i], by);
    return block;
  }

  friend FourLanes operator^(const FourLanes& a, const FourLanes& b) {
    FourLanes block;
    for (int i = 0; i < 4; ++i) block.lanes_[i] = add(a.lanes_[i], b.lanes_[i]);
    return block;
  }

  /// Folds the four lanes to the end of the block and adds them.
  LaneRegister lane_sum() const {
    const Factor over_lane(distance(16));
    LaneRegister sum = lanes_[0];
    for (int i = 1; i < 4; ++i) sum = add(folded(sum, over_lane), lanes_[i]);
    return sum;
  }

 private:
  static LaneRegister folded(LaneRegister lane, const Factor& by) {
    return add(high_product(lane, by.value_), low_product(lane, by.value_));
  }

  LaneRegister lanes_[4] = {};
};

#if defined(__x86_64__)
constexpr const char* kUnit = "pclmul";
#else
constexpr const char* kUnit = "pmull";
#endif

}  // namespace

const Implementation kLanes{kUnit, multiply_by_clmul, rows_by_folding<FourLanes>};

}  // namespace shardtool::kernels

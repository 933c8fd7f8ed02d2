#include <cstddef>
#include <cstdint>
#include <cstring>

namespace shardtool::kernels {
namespace {

/// One number at a time.
struct Lanes {
  static constexpr int kCount = 1;
  static constexpr int kRows = 2;
  std::uint64_t v;

  static Lanes zero() { return {0}; }
  static Lanes all(std::uint64_t x) { return {x}; }
  static Lanes numbers(const std::uint64_t* at) { return {*at}; }
  template <class Stored, int kShift>
  static Lanes load(const std::byte* at) {
    Stored x;
    std::memcpy(&x, at, sizeof x);
    return {static_cast<std::uint64_t>(x) >> kShift & 0xffff};
  }
  Lanes masked(std::uint64_t mask) const { return {v & mask}; }
  Lanes shifted(int bits) const { return {v >> bits}; }
  void add_product(Lanes a, Lanes b) { v += a.v * b.v; }
  std::uint64_t sum() const { return v; }
  void store(std::uint64_t* at) const { *at = v; }
};

}  // namespace
}  // namespace shardtool::kernels

#include "kernels/product/loops.inc"

namespace shardtool::kernels {

const ProductImplementation kProductPortable = implementation_named("portable");

}  // namespace shardtool::kernels

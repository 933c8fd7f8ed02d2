#include "lib/ops/pricing.h"

#include <numeric>

#include "lib/base/dtype.h"

namespace shardtool::ops {
namespace {

/// Returns the arithmetic for products with weights of this dtype; 8-bit weights have 8-bit
/// activations.
plan::Arithmetic arithmetic_of(Dtype dtype) {
  const DtypeInfo& info = dtype_info(dtype);
  if (info.bits > 8) return plan::Arithmetic::kBf16;
  if (info.kind != DtypeKind::kFloat) return plan::Arithmetic::kInt8;
  return info.bits == 8 ? plan::Arithmetic::kFp8 : plan::Arithmetic::kFp4;
}

}  // namespace

double Amounts::all_flops() const {
  return std::accumulate(flops.begin(), flops.end(), 0.0);
}

double bytes_of(i64 elements, Dtype dtype) {
  return static_cast<double>(elements) * bits(dtype) / 8;
}

plan::Arithmetic Pricing::arithmetic() const {
  const auto& weights = step.op->weights;
  if (weights.empty() || weights.front().empty()) return plan::Arithmetic::kBf16;
  return arithmetic_of(tensors[weights.front().front()].dtype);
}

double Pricing::weight_bytes() const {
  const auto& weights = step.op->weights;
  if (weights.empty() || weights.front().empty()) return 0;
  return bytes_of(step.work.weight_elements, tensors[weights.front().front()].dtype);
}

void Pricing::add_products(i64 times) {
  const auto n = static_cast<double>(tokens);
  add_flops(arithmetic(), 2 * n * static_cast<double>(times * step.work.weight_elements));
  sum.weight_bytes += weight_bytes();
}

}  // namespace shardtool::ops

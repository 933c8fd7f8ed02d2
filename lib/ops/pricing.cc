#include "lib/ops/pricing.h"

#include <numeric>

#include "lib/base/dtype.h"

namespace shardtool::ops {
namespace {

plan::Arithmetic arithmetic_of(const DtypeInfo& info) {
  if (info.bits > 8) return plan::Arithmetic::kBf16;
  if (info.kind != DtypeKind::kFloat) return plan::Arithmetic::kInt8;
  return info.bits == 8 ? plan::Arithmetic::kFp8 : plan::Arithmetic::kFp4;
}

/// Returns the bits to which such products quantise a value; 0 if they take it as it is.
i64 quantised_bits(plan::Arithmetic arithmetic) {
  switch (arithmetic) {
    case plan::Arithmetic::kBf16:
      return 0;
    case plan::Arithmetic::kInt8:
    case plan::Arithmetic::kFp8:
    case plan::Arithmetic::kFp4WithFp8:
      return 8;
    case plan::Arithmetic::kFp4:
      return 4;
  }
  return 0;
}

}  // namespace

WeightRead read_of(Dtype dtype) {
  const DtypeInfo& info = dtype_info(dtype);
  return {static_cast<double>(info.bits), arithmetic_of(info)};
}

double Amounts::all_flops() const {
  return std::accumulate(flops.begin(), flops.end(), 0.0);
}

WeightRead Pricing::read() const {
  const auto& weights = step.op->weights;
  if (weights.empty() || weights.front().empty()) return {0, plan::Arithmetic::kBf16};
  return reads[weights.front().front()];
}

double Pricing::weight_bytes() const {
  return static_cast<double>(step.work.weight_elements) * read().bits / 8;
}

void Pricing::add_values() {
  const i64 each = step.work.input_elements + step.work.output_elements;
  add_values(static_cast<double>(tokens) * static_cast<double>(each));
}

void Pricing::add_quantising(double inputs, double results) {
  const i64 bits = quantised_bits(arithmetic());
  if (bits == 0) return;
  const double each = static_cast<double>(activation_bits + 2 * bits) / 8;
  const auto kind = static_cast<size_t>(arithmetic());
  sum.quantising_bytes[kind] += inputs * each;
  sum.gradient_quantising_bytes[kind] += results * each;
}

void Pricing::add_products(i64 times) {
  const auto n = static_cast<double>(tokens);
  const double flops = 2 * n * static_cast<double>(times * step.work.weight_elements);
  add_flops(arithmetic(), flops);
  sum.weight_bytes += weight_bytes();
  if (is_narrow()) add_narrow(flops, weight_bytes());
}

}  // namespace shardtool::ops

#include "lib/api/planning/unpacked_tensors.h"

#include "lib/api/proof/unpacked_files.h"

namespace shardtool::api {
namespace {

/// Returns the format of products. Scales that are powers of two mark MXFP4, whose products take
/// values of 8 bits.
plan::Arithmetic arithmetic_of(const model::PackedFormat& format) {
  if (format.code != kernels::CodeKind::kE2M1) return plan::Arithmetic::kBf16;
  const bool is_mx = format.scale_dtype == Dtype::kF8E8M0;
  return is_mx ? plan::Arithmetic::kFp4WithFp8 : plan::Arithmetic::kFp4;
}

ops::WeightRead packed_read(const model::PackedWeight& weight, Dtype stored_scales) {
  ops::WeightRead read;
  read.bits = static_cast<double>(weight.bits);
  read.arithmetic = arithmetic_of(*weight.format);
  if (weight.group_size < 1) return read;
  const i64 zero_bits = weight.zeros ? weight.bits : 0;
  const i64 scale_bits = bits(weight.format->scale_dtype.value_or(stored_scales));
  read.bits += static_cast<double>(scale_bits + zero_bits) / static_cast<double>(weight.group_size);
  return read;
}

}  // namespace

std::vector<model::PackedWeight> add_unpacked(const mapping::ModelConfig& config,
                                              PlacedTensors& placed) {
  std::vector<model::PackedWeight> weights;
  try {
    weights = model::packed_weights(config, placed.specs);
  } catch (const Error& error) {
    if (!why_not_this_model(error)) throw;
    return {};
  }
  for (model::PackedWeight& weight : weights) {
    leave_out_uncut_codes(weight, *placed.stored[weight.codes]);
    TensorSpec& codes = placed.specs[weight.codes];
    if (codes.name == weight.spec.name) codes.name += " (codes)";
    placed.specs.push_back(weight.spec);
    placed.layouts.push_back(unpacked_layout(weight, *placed.layouts[weight.codes]));
    placed.stored.push_back(unpacked_layout(weight, *placed.stored[weight.codes]));
  }
  return weights;
}

std::map<size_t, ops::WeightRead> packed_reads(const std::vector<model::PackedWeight>& packed,
                                               const std::vector<TensorSpec>& specs) {
  std::map<size_t, ops::WeightRead> reads;
  const size_t stored = specs.size() - packed.size();
  for (size_t i = 0; i < packed.size(); ++i) {
    reads[stored + i] = packed_read(packed[i], specs[packed[i].scales].dtype);
  }
  return reads;
}

}  // namespace shardtool::api

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "lib/mapping/presets.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/model/graph/graph_list.h"
#include "tests/model/published.h"
#include "tests/presets/fixture.h"

/// Bytes with which training quantises values for products of 8 bits or less.
using namespace shardtool;
using doctest::Approx;
using model::Amounts;

namespace {

constexpr auto kFp8 = static_cast<size_t>(plan::Arithmetic::kFp8);
/// A value in bf16 is read, and written in 8 bits by rows and by columns.
constexpr double kEach = 2 + 1 + 1;

Amounts prefill_of(Dtype dtype, const std::string& mesh, i64 tokens) {
  const auto llama = model::llama_3_8b(dtype);
  const auto resolution = llama.on(mesh);
  const auto weights = model::weights_of(resolution, llama.tensors.size());
  return model::price(llama.bound, llama.tensors, weights, resolution.mesh,
                      {.prompt_len = tokens, .context = tokens}, nullptr)
      .prefill.amounts;
}

/// A step of six sequences, by a Mixtral whose experts alone are in FP8.
Amounts step_of_experts(const std::string& mesh) {
  const mapping::Fixture& f = mapping::fixture("mixtral");
  auto tensors = f.tensors;
  for (TensorSpec& spec : tensors) {
    if (spec.name.find(".experts.") != std::string::npos) spec.dtype = Dtype::kF8E4M3;
  }
  std::string why_not;
  const auto bound = model::bind_model(model::find_graph(f.config, why_not), f.config, tensors);
  mapping::ResolveOptions options;
  options.mesh = mesh::parse_mesh(mesh);
  const auto resolution = resolve(mapping::load_preset(f.preset), tensors, &f.config, options);
  return model::price(bound, tensors, model::weights_of(resolution, tensors.size()),
                      resolution.mesh, {.batch = 6, .context = 64}, nullptr)
      .decode.amounts;
}

}  // namespace

TEST_CASE("values that no norm made are quantised before a product, and gradients of its result") {
  const auto bytes = [](const char* mesh, auto Amounts::*member) {
    const double one = (prefill_of(Dtype::kF8E4M3, mesh, 1).*member)[kFp8];
    return ((prefill_of(Dtype::kF8E4M3, mesh, 1000).*member)[kFp8] - one) / (999 * 32 * kEach);
  };
  // 32 layers: the inputs of o and down; the results of q, k, v, gate and up, and of o and down,
  // which are summed over tp.
  constexpr double kInputs = 4096 + 14'336, kCutRows = 4096 + 2 * 1024 + 2 * 14'336,
                   kSums = 2 * 4096;
  for (const auto& [mesh, devices] : {std::pair("tp=1", 1), {"tp=2", 2}, {"tp=8", 8}}) {
    CAPTURE(mesh);
    CHECK(bytes(mesh, &Amounts::quantising_bytes) == Approx(kInputs / devices));
    CHECK(bytes(mesh, &Amounts::gradient_quantising_bytes) == Approx(kCutRows / devices + kSums));
  }
}

TEST_CASE("products in bf16 take values as they are") {
  const Amounts amounts = prefill_of(Dtype::kBF16, "tp=1", 1000);
  const auto is_zero = [](double bytes) { return bytes == 0; };
  CHECK(std::ranges::all_of(amounts.quantising_bytes, is_zero));
  CHECK(std::ranges::all_of(amounts.gradient_quantising_bytes, is_zero));
}

TEST_CASE("the rows of experts are quantised where the experts are") {
  const Amounts whole = step_of_experts("ep=1");
  double hidden = 0;
  for (const TensorSpec& spec : mapping::fixture("mixtral").tensors) {
    if (spec.name.ends_with(".experts.0.w1.weight")) hidden = static_cast<double>(spec.shape[0]);
  }
  // Two layers; two experts per sequence, each with 48 features and a gate.
  constexpr double kRows = 2 * 6 * 2;
  CHECK(whole.quantising_bytes[kFp8] == Approx(kRows * (48 + hidden) * kEach));
  CHECK(whole.gradient_quantising_bytes[kFp8] == Approx(kRows * (48 + 2 * hidden) * kEach));
  const Amounts third = step_of_experts("ep=3");
  CHECK(3 * third.quantising_bytes[kFp8] == Approx(whole.quantising_bytes[kFp8]));
  CHECK(3 * third.gradient_quantising_bytes[kFp8] == Approx(whole.gradient_quantising_bytes[kFp8]));
}

#include "lib/engine/golden.h"

#include <fmt/format.h>

#include <array>

#include "lib/base/error.h"
#include "lib/engine/diagnosis/compare.h"
#include "lib/engine/run/run.h"
#include "lib/engine/weights/row_chunks.h"

namespace shardtool::engine {
namespace {

void multiply(const Product& product, const Side& side, Run<float>& run) {
  run.begin(product);
  std::vector<std::byte> bytes;
  for (const auto rows : row_chunks(product.rows.local_size(), product.row_bytes())) {
    bytes.resize(static_cast<size_t>(rows.size() * product.row_bytes()));
    side.weights->read(product.stored(rows), bytes);
    run.multiply(product, share_of_work(product, rows, bytes.data(), 0, 1));
  }
  run.end(product);
}

GoldenDifference difference(const std::string& value, const std::vector<float>& golden,
                            const Part<float>& ours, i64 tokens) {
  if (golden.size() != ours.data.size()) {
    throw Error(ErrorCode::kShapeMismatch,
                fmt::format("the golden {} has another size than the model's", value))
        .note("found", fmt::format("{} numbers", golden.size()))
        .note("expected", fmt::format("{} numbers", ours.data.size()));
  }
  const Part<float> expected{ours.features, golden};
  const Difference found = compare(expected, Placed<float>{{0, ours}}, tokens, 0);
  return {value, found.checked, found.worst};
}

}  // namespace

std::vector<GoldenDifference> compare_with_golden(const Side& whole, const Golden& golden) {
  Inputs inputs;
  inputs.sequences = golden.sequences;
  inputs.length = golden.length;
  inputs.tokens = golden.tokens;
  inputs.given = golden.given;
  inputs.has_images = !golden.given.empty();
  inputs.ends_with_word = false;
  Fabric fabric(whole.mesh, nullptr);
  Run<float> run(whole, fabric, inputs, nullptr);
  std::vector<GoldenDifference> differences;
  model::Stream stream;
  PlacedValues<float> passed;
  size_t hidden = 0;
  constexpr std::array<i64, 1> kAlone{0};
  for (size_t i = 0; i < whole.model->layers.size(); ++i) {
    const model::Layer& layer = whole.model->layers[i];
    const auto flow = model::flow(*whole.model, i, whole.layouts, whole.mesh, {}, stream);
    run.begin_layer(layer, std::move(passed), kAlone);
    for (const ops::Step& step : flow.steps) {
      run.begin_step(step);
      for (const Product& product : products_of(whole, *step.op, 0)) {
        multiply(product, whole, run);
      }
      run.end_step(step);
    }
    passed.clear();
    for (const std::string& name : layer.passes) passed[name] = run.value(name);
    const bool is_told = passed.contains("x") && (inputs.has_images || !layer.beside);
    if (!is_told || hidden >= golden.hidden.size()) continue;
    const std::string name = fmt::format("hidden state {}", hidden);
    differences.push_back(
        difference(name, golden.hidden[hidden++], run.value("x").at(0), inputs.rows()));
  }
  const Part<float>& logits = passed.begin()->second.at(0);
  differences.push_back(difference("logits", golden.logits, logits, inputs.rows()));
  return differences;
}

}  // namespace shardtool::engine

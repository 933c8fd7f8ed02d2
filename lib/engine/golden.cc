#include "lib/engine/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/engine/diagnosis/compare.h"
#include "lib/engine/run/run.h"
#include "lib/engine/weights/row_chunks.h"

namespace shardtool::engine {
namespace {

void multiply(const MatrixProduct& product, const Side& side, Run<float>& run) {
  run.begin(product, product);
  std::vector<std::byte> bytes;
  for (const auto rows : row_chunks(product.rows.local_size(), product.row_bytes())) {
    bytes.resize(static_cast<size_t>(rows.size() * product.row_bytes()));
    side.weights->read(product.stored(rows), bytes);
    run.multiply(product, share_of_work(product, rows, bytes.data(), 0, 1));
  }
  run.end(product);
}

/// Returns the rows of the golden positions.
std::vector<float> golden_rows(const Golden& golden, const Part<float>& all) {
  if (golden.positions.empty()) return all.data.values();
  const auto width = std::ssize(all.data) / (golden.sequences * golden.length);
  std::vector<float> rows;
  for (i64 sequence = 0; sequence < golden.sequences; ++sequence) {
    for (const i64 position : golden.positions) {
      const auto row = all.data.begin() + (sequence * golden.length + position) * width;
      rows.insert(rows.end(), row, row + width);
    }
  }
  return rows;
}

GoldenDifference difference(const std::string& value, const Golden& golden,
                            const std::vector<float>& expected, const Part<float>& computed) {
  const Part<float> ours{computed.features, golden_rows(golden, computed)};
  if (expected.size() != ours.data.size()) {
    throw Error(ErrorCode::kShapeMismatch,
                fmt::format("the golden {} has another size than the model's", value))
        .note("found", fmt::format("{} numbers", expected.size()))
        .note("expected", fmt::format("{} numbers", ours.data.size()));
  }
  const auto positions = golden.positions.empty() ? golden.length : std::ssize(golden.positions);
  const ValueDifference found = compare(Part<float>{ours.features, expected},
                                        Placed<float>{{0, ours}}, golden.sequences * positions, 0);
  const double worst = found.has_nan ? std::numeric_limits<double>::infinity() : found.worst;
  return {value, found.checked, worst};
}

void require_known_tokens(const model::Model& model, const Golden& golden) {
  const auto vocabulary = model.sizes.find("vocab");
  if (vocabulary == model.sizes.end()) return;
  const auto odd = std::ranges::find_if(
      golden.tokens, [&](i64 token) { return token < 0 || token >= vocabulary->second; });
  if (odd == golden.tokens.end()) return;
  throw Error(ErrorCode::kShapeMismatch, "a golden token is not in the model's vocabulary")
      .note("found", std::to_string(*odd))
      .note("expected", fmt::format("0 to {}", vocabulary->second - 1));
}

}  // namespace

std::vector<GoldenDifference> compare_with_golden(const Side& whole, const Golden& golden) {
  require_known_tokens(*whole.model, golden);
  Inputs inputs;
  inputs.sequences = golden.sequences;
  inputs.length = golden.length;
  inputs.tokens = golden.tokens;
  inputs.given = golden.given;
  inputs.has_images = !golden.given.empty();
  inputs.ends_with_word = false;
  Fabric fabric(whole.mesh, nullptr);
  Run<float> run(whole, fabric, inputs, {});
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
      for (const MatrixProduct& product : products_of(whole, *step.op, 0)) {
        multiply(product, whole, run);
      }
      run.end_step(step);
    }
    passed.clear();
    for (const std::string& name : layer.passes) passed[name] = run.value(name);
    const bool is_told = passed.contains("x") && (inputs.has_images || !layer.is_vision_encoder);
    if (!is_told || hidden >= golden.hidden.size()) continue;
    const std::string name = fmt::format("hidden state {}", hidden);
    differences.push_back(difference(name, golden, golden.hidden[hidden++], run.value("x").at(0)));
  }
  const Part<float>& logits = passed.begin()->second.at(0);
  differences.push_back(difference("logits", golden, golden.logits, logits));
  if (hidden < golden.hidden.size()) {
    throw Error(ErrorCode::kShapeMismatch, "the model has fewer hidden states than the golden file")
        .note("found", plural(std::ssize(golden.hidden), "state"))
        .note("expected", fmt::format("at most {}", hidden));
  }
  return differences;
}

}  // namespace shardtool::engine

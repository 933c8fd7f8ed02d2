// Attention over many tokens takes long, so it checks for an interruption while it runs.
#include <doctest/doctest.h>

#include <atomic>

#include "lib/base/interruption.h"
#include "lib/ops/body.h"
#include "tests/support/throws.h"
#include "tests/validate/compared.h"
#include "tests/validate/mutations/mutations.h"

namespace shardtool::test {
namespace {

/// Returns the first attention of the model.
const ops::BoundOp& attention_of(const model::Model& model) {
  for (const model::Layer& layer : model.layers) {
    for (const ops::BoundOp& op : layer.ops) {
      if (std::holds_alternative<ops::Attention>(op.op->kind)) return op;
    }
  }
  throw std::logic_error("no attention");
}

TEST_CASE("attention ends where its run is to stop, and makes its value where it is not") {
  const TempFolder folder;
  const Compared compared(model_folder("prototype"), split_copy("prototype", "tp=4", folder));
  const engine::Side& side = compared.whole();
  const ops::BoundOp& op = attention_of(*side.model);
  const auto& kind = std::get<ops::Attention>(op.op->kind);
  std::atomic<bool> cancel = false;
  ops::Inputs inputs;
  inputs.length = 2;
  const auto heads = [&](const ops::Dim& n, const ops::Dim& dim) {
    const i64 features = side.model->size(n) * side.model->size(dim);
    return ops::empty_part<double>(index::AxisMap::identity(features), inputs.rows());
  };
  const ops::Part<double> q = heads(kind.heads, kind.key_dim);
  const ops::Part<double> k = heads(kind.kv_heads, kind.key_dim);
  const ops::Part<double> v = heads(kind.kv_heads, kind.value_dim);
  kernels::Workbench bench(nullptr, &cancel);
  const Interruptible scope(&cancel);
  const ops::OpAt<double> at{*side.model, side, inputs, op, 0, 0, bench, {&q, &k, &v}};
  CHECK(ops::apply(kind, at).width() == q.width());
  cancel = true;
  CHECK_ERROR(kInterrupted, ops::apply(kind, at));
}

}  // namespace
}  // namespace shardtool::test

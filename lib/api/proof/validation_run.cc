#include "lib/api/proof/validation_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/xxh3/xxh3.h"
#include "lib/api/transfer/run_identity.h"
#include "lib/ops/op_table.h"

namespace shardtool::api {
namespace {

std::string graph_text(const model::Model& model) {
  std::string text;
  for (const model::Layer& layer : model.layers) {
    text += fmt::format("{} {}\n", layer.block, layer.number);
    for (const model::BoundOp& op : layer.ops) {
      text += fmt::format("{} {} {} {} {}\n", op.op->row->title, op.op->in, op.op->out,
                          op.form != nullptr, op.weights);
    }
  }
  return text;
}

}  // namespace

std::string validation_run(const ValidateInputs& inputs, const ValidateOptions& options,
                           const model::Model& shards) {
  const std::string text = fmt::format(
      "{}\n{}\n{}\n{}\n{} {} {} {} {} {} {}\n", SHARDTOOL_VERSION, source_hash(inputs.proved()),
      inputs.reference ? source_hash(*inputs.reference) : "", graph_text(shards), options.seed,
      options.tokens, options.quick, options.ordered, options.native, options.compares_values,
      options.require_coverage);
  return kernels::xxh3_hex(std::as_bytes(std::span(text)));
}

}  // namespace shardtool::api

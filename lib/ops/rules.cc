#include "lib/ops/rules.h"

#include "lib/ops/op_table.h"

namespace shardtool::ops {

using plan::OpRow;
using plan::Placement;

OpRow RuleSite::row(std::vector<Placement> in, Placement result) const {
  return row(std::move(in), std::vector<Placement>(weights(), kWhole), result);
}

OpRow RuleSite::row(std::vector<Placement> in, const std::vector<Placement>& weights,
                    Placement result) const {
  in.insert(in.end(), weights.begin(), weights.end());
  return {std::move(in), result};
}

std::vector<OpRow> RuleSite::unary(const std::vector<OpRow>& rules) const {
  std::vector<OpRow> rows;
  for (const OpRow& rule : rules) {
    rows.push_back(row({rule.operands.front()}, rule.result));
    rows.back().operands.resize(inputs() + weights(), kWhole);
  }
  return rows;
}

std::vector<OpRow> RuleSite::with_weights() const {
  std::vector<OpRow> rows = by_tokens();
  std::vector<Placement> cut;
  for (const WeightRef& weight : bound_.op->weights) {
    cut.push_back(Placement::sharded(static_cast<int>(features_axis(weight))));
  }
  rows.push_back(row(std::vector<Placement>(inputs(), kCut), cut, kCut));
  return rows;
}

std::vector<OpRow> rules_of(const RuleSite& site) {
  return site.bound().op->row->rules(*site.bound().op, site);
}

}  // namespace shardtool::ops

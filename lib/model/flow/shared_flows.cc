#include "lib/model/flow/shared_flows.h"

#include <algorithm>
#include <utility>

#include "lib/model/flow/handoff.h"

namespace shardtool::model {

std::shared_ptr<const LayerFlow> SharedFlows::of(size_t layer, Stream& stream) {
  for (size_t i = walked_.size(); i-- > 0;) {  // layers are most like those just before them
    if (!is_alike(walked_[i], layer, stream)) continue;
    stream = walked_[i].after;
    return walked_[i].flow;
  }
  Walked walked{layer, stream, {}, {}};
  walked.flow =
      std::make_shared<const LayerFlow>(flow(model_, layer, layouts_, mesh_, own_tokens_, stream));
  walked.after = stream;
  walked_.push_back(std::move(walked));
  return walked_.back().flow;
}

bool SharedFlows::is_alike(const Walked& walked, size_t layer, const Stream& stream) const {
  const Layer& a = model_.layers[walked.layer];
  const Layer& b = model_.layers[layer];
  if (walked.flow->depends_on_number && a.number != b.number) return false;
  return a.of_prompt == b.of_prompt && a.passes == b.passes &&
         std::ranges::equal(
             a.ops, b.ops,
             [this](const BoundOp& x, const BoundOp& y) { return are_alike(x, y); }) &&
         std::ranges::equal(devices_of(model_, walked.layer, layouts_),
                            devices_of(model_, layer, layouts_)) &&
         walked.before == stream;
}

bool SharedFlows::are_alike(const BoundOp& a, const BoundOp& b) const {
  return a.op == b.op && a.form == b.form &&
         std::ranges::equal(
             a.weights, b.weights,
             [this](const BoundWeight& x, const BoundWeight& y) { return are_alike(x, y); });
}

bool SharedFlows::are_alike(const BoundWeight& a, const BoundWeight& b) const {
  return std::ranges::equal(a, b, [this](size_t x, size_t y) {
    return &layouts_(x) == &layouts_(y) && reads_[x] == reads_[y];
  });
}

}  // namespace shardtool::model

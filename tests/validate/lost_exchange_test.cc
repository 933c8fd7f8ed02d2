// Row 38: shards that are right, and devices that do not add up what they are to.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "shardtool/api/mapping_choice.h"
#include "shardtool/api/plan_reshard.h"
#include "shardtool/api/weight_files.h"
#include "shardtool/comm/embedded.h"
#include "shardtool/engine/diagnosis.h"
#include "shardtool/engine/validation.h"
#include "shardtool/model/graph_list.h"
#include "tests/validate/mutations.h"

namespace shardtool::test {
namespace {

/// A model's files bound to its graph, whole or on the devices of its manifest.
class Bound {
 public:
  /// Both sides of a comparison share a graph; null: that of the config.
  Bound(const std::string& folder, bool is_whole, std::shared_ptr<const model::Graph> graph)
      : files_(api::open_logical({folder})), specs_(files_.specs()), config_(*files_.config()) {
    std::string why;
    if (!graph) graph = model::find_graph(config_, why);
    model_ = model::bind_model(std::move(graph), config_, specs_);
    weights_ = std::make_unique<api::WeightFiles>(files_);
    if (is_whole) {
      for (const TensorSpec& spec : specs_) {
        layouts_.push_back(
            std::make_shared<layout::Layout>(layout::Layout::replicated(mesh::Mesh(), spec.shape)));
      }
    } else {
      const auto applied = api::apply_mapping(api::base_choice(files_, {}), files_);
      side_.mesh = applied.resolution.mesh;
      layouts_.resize(specs_.size());
      for (const auto& tensor : applied.resolution.tensors) {
        layouts_[tensor.tensor] = tensor.layout;
      }
    }
    side_.model = &model_;
    side_.config = &config_;
    side_.tensors = specs_;
    side_.layouts = [this](size_t t) -> const layout::Layout& { return *layouts_[t]; };
    side_.weights = weights_.get();
    side_.sum_bias = [](size_t) { return engine::SumBias::kAfterReduction; };
    for (size_t t = 0; t < specs_.size(); ++t) side_.by_name[specs_[t].name] = t;
  }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;
  const engine::Side& side() const { return side_; }

 private:
  api::LogicalCheckpoint files_;
  std::vector<TensorSpec> specs_;
  mapping::ModelConfig config_;
  model::Model model_;
  std::unique_ptr<api::WeightFiles> weights_;
  std::vector<std::shared_ptr<const layout::Layout>> layouts_;
  engine::Side side_;
};

/// Another communicator whose n-th all_gather (from 1) brings nothing of the others.
class LosingCommunicator final : public comm::Communicator {
 public:
  LosingCommunicator(comm::Communicator& parent, int lost)
      : Communicator(parent.rank(), parent.size()), parent_(parent), lost_(lost) {}
  void raise_stop() noexcept override { parent_.raise_stop(); }
  bool stop_was_raised() override { return parent_.stop_was_raised(); }
  void require_others() override { parent_.require_others(); }

 protected:
  Ticket do_post(int to, Channel, std::string bytes) override {
    parent_.send(to, bytes);
    return 0;
  }
  void do_finish(Ticket) override {}
  std::string do_receive(int from, Channel) override { return parent_.receive(from); }
  void do_abort(const std::string& reason) noexcept override { parent_.abort(reason); }
  std::string do_broadcast(int from, std::string bytes) override {
    return parent_.broadcast(from, std::move(bytes));
  }
  std::vector<std::string> do_all_gather(std::string_view mine) override {
    auto all = parent_.all_gather(mine);
    if (++gathered_ != lost_) return all;
    for (int rank = 0; rank < size(); ++rank) {
      if (rank != this->rank()) all[static_cast<size_t>(rank)].clear();
    }
    return all;
  }

 private:
  comm::Communicator& parent_;
  int lost_;
  int gathered_ = 0;
};

engine::Verdict verdict_losing(const Bound& whole, const Bound& shards, int lost) {
  engine::Verdict verdict;
  comm::run_embedded(2, [&](comm::Communicator& comm) {
    LosingCommunicator losing(comm, lost);
    engine::ValidationOptions options;
    options.threads = 1;
    options.with_f64 = false;
    auto mine = engine::validate(whole.side(), shards.side(), &losing, options);
    if (comm.rank() == 0) verdict = std::move(mine);
  });
  return verdict;
}

TEST_CASE("one all-reduce that is not carried out fails, and the bytes are cleared of it") {
  const TempFolder folder;
  const std::string parts = split_copy("llama", "tp=2", folder);
  const Bound whole(model_folder("llama"), true, nullptr);
  const Bound shards(parts, false, whole.side().model->graph);
  CHECK(verdict_losing(whole, shards, 0).tiers.front().verdict == "pass");
  // In the order of gathers: the embedding's result for its comparison, its sum; what attention
  // adds for its comparison, its sum.
  for (const int lost : {2, 4}) {
    CAPTURE(lost);
    const engine::Verdict verdict = verdict_losing(whole, shards, lost);
    CHECK(verdict.tiers.front().verdict == "fail");
    REQUIRE(!verdict.tiers.front().faults.empty());
    engine::Fault fault = verdict.tiers.front().faults.front();
    engine::diagnose(whole.side(), shards.side(), fault);
    CHECK(fault.diagnosis.find("the bytes are those of the reference") == 0);
    CHECK(fault.diagnosis.find("what devices exchange") != std::string::npos);
  }
}

}  // namespace
}  // namespace shardtool::test

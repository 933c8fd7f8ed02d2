// Row 38: shards that are right, and devices that do not add up what they are to.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "shardtool/api/bound_side.h"
#include "shardtool/comm/embedded.h"
#include "shardtool/engine/diagnosis.h"
#include "shardtool/engine/validation.h"
#include "shardtool/model/graph_list.h"
#include "tests/validate/mutations.h"

namespace shardtool::test {
namespace {

/// A split of a model beside the model, as an engine compares them.
class Compared {
 public:
  Compared(const std::string& model, const std::string& parts)
      : whole_files_(api::open_logical({model})),
        shards_files_(api::open_logical({parts})),
        config_(*whole_files_.config()) {
    std::string why;
    const auto graph = model::find_graph(config_, why);
    whole_.emplace(graph, config_, api::whole_files(whole_files_));
    shards_.emplace(graph, config_, api::shard_files(shards_files_, {}));
  }
  const engine::Side& whole() const { return whole_->side(); }
  const engine::Side& shards() const { return shards_->side(); }

 private:
  api::LogicalCheckpoint whole_files_, shards_files_;
  mapping::ModelConfig config_;
  std::optional<api::BoundSide> whole_, shards_;
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

engine::Verdict verdict_losing(const Compared& model, int lost) {
  engine::Verdict verdict;
  comm::run_embedded(2, [&](comm::Communicator& comm) {
    LosingCommunicator losing(comm, lost);
    engine::ValidationOptions options;
    options.threads = 1;
    options.with_f64 = false;
    auto mine = engine::validate(model.whole(), model.shards(), &losing, options);
    if (comm.rank() == 0) verdict = std::move(mine);
  });
  return verdict;
}

TEST_CASE("one all-reduce that is not carried out fails, and the bytes are cleared of it") {
  const TempFolder folder;
  const Compared model(model_folder("llama"), split_copy("llama", "tp=2", folder));
  CHECK(verdict_losing(model, 0).tiers.front().verdict == "pass");
  // In the order of gathers: the embedding's result for its comparison, its sum; what attention
  // adds for its comparison, its sum.
  for (const int lost : {2, 4}) {
    CAPTURE(lost);
    const engine::Verdict verdict = verdict_losing(model, lost);
    CHECK(verdict.tiers.front().verdict == "fail");
    REQUIRE(!verdict.tiers.front().faults.empty());
    engine::Fault fault = verdict.tiers.front().faults.front();
    engine::diagnose(model.whole(), model.shards(), fault);
    CHECK(fault.diagnosis.find("the bytes are those of the reference") == 0);
    CHECK(fault.diagnosis.find("what devices exchange") != std::string::npos);
  }
}

}  // namespace
}  // namespace shardtool::test

// Row 38: correct shards on devices that omit an exchange.
#include <doctest/doctest.h>

#include "lib/comm/embedded.h"
#include "lib/engine/diagnosis/diagnosis.h"
#include "lib/engine/validation.h"
#include "tests/validate/compared.h"
#include "tests/validate/mutations/mutations.h"

namespace shardtool::test {
namespace {

/// Faults between two devices: the number of the disturbed exchange in each process, from 1; 0:
/// none.
struct Disturbance {
  int lost_gather = 0;      ///< this gather lacks the other processes' parts
  int changed_message = 0;  ///< the last byte of this message changes
};

/// Wraps a communicator and disturbs one exchange.
class DisturbedCommunicator final : public comm::Communicator {
 public:
  DisturbedCommunicator(comm::Communicator& parent, const Disturbance& disturbance)
      : Communicator(parent.rank(), parent.size()), parent_(parent), disturbance_(disturbance) {}
  void raise_stop() noexcept override { parent_.raise_stop(); }
  bool stop_was_raised() override { return parent_.stop_was_raised(); }
  void require_others() override { parent_.require_others(); }

 protected:
  Ticket do_post(int to, Channel, std::string bytes) override {
    if (++sent_ == disturbance_.changed_message) bytes.back() = static_cast<char>(~bytes.back());
    parent_.send(to, bytes);
    return 0;
  }
  void do_finish(Ticket) override {}
  std::string do_receive(int from, Channel) override { return parent_.receive(from); }
  void do_abort(const Error& error) noexcept override {
    Error same = error;
    parent_.abort(same);
  }
  std::string do_broadcast(int from, std::string bytes) override {
    return parent_.broadcast(from, std::move(bytes));
  }
  std::vector<std::string> do_all_gather(std::string_view mine) override {
    auto all = parent_.all_gather(mine);
    if (++gathered_ != disturbance_.lost_gather) return all;
    for (int rank = 0; rank < size(); ++rank) {
      if (rank != this->rank()) all[static_cast<size_t>(rank)].clear();
    }
    return all;
  }

 private:
  comm::Communicator& parent_;
  Disturbance disturbance_;
  int gathered_ = 0;
  int sent_ = 0;
};

engine::Verdict verdict_of(const Compared& model, const Disturbance& disturbance,
                           bool with_f64 = false) {
  engine::Verdict verdict;
  comm::run_embedded(2, [&](comm::Communicator& comm) {
    DisturbedCommunicator disturbed(comm, disturbance);
    engine::ValidationOptions options;
    options.resources.threads = 1;
    options.with_f64 = with_f64;
    auto mine = engine::validate(model.whole(), model.shards(), &disturbed, options);
    if (comm.rank() == 0) verdict = std::move(mine);
  });
  return verdict;
}

TEST_CASE("one all-reduce that is not carried out fails, and the bytes are cleared of it") {
  const TempFolder folder;
  const Compared model(model_folder("llama"), split_copy("llama", "tp=2", folder));
  CHECK(verdict_of(model, {}).tiers.front().outcome == engine::Outcome::kPass);
  // Order of the gathers: the embedding's result for its comparison, then its sum; then the same
  // for the attention.
  for (const int lost : {2, 4}) {
    CAPTURE(lost);
    const engine::Verdict verdict = verdict_of(model, {.lost_gather = lost});
    CHECK(verdict.tiers.front().outcome == engine::Outcome::kFail);
    REQUIRE(!verdict.tiers.front().faults.empty());
    engine::Fault fault = verdict.tiers.front().faults.front();
    engine::diagnose(model.whole(), model.shards(), fault);
    CHECK(fault.diagnosis.find("the bytes are those of the reference") == 0);
    CHECK(fault.diagnosis.find("an exchange between devices") != std::string::npos);
  }
}

TEST_CASE("a stage that does not receive what was sent fails once, and the bytes are not blamed") {
  const TempFolder folder;
  const Compared model(model_folder("prototype"), split_copy("prototype", "pp=3", folder));
  CHECK(verdict_of(model, {}, true).tiers.back().outcome == engine::Outcome::kPass);
  // Process 0 simulates rank 0, and process 1 ranks 1 and 2. The first message of each tier is a
  // hand-off.
  for (const size_t tier : {0U, 1U}) {
    const int message = static_cast<int>(tier) + 1;
    const engine::Verdict verdict = verdict_of(model, {.changed_message = message}, true);
    for (size_t t = 0; t < 2; ++t) {
      CHECK(verdict.tiers.at(t).outcome ==
            (t == tier ? engine::Outcome::kFail : engine::Outcome::kPass));
    }
    REQUIRE(verdict.tiers.at(tier).faults.size() == 1);
    engine::Fault fault = verdict.tiers.at(tier).faults.front();
    engine::diagnose(model.whole(), model.shards(), fault);
    CHECK(fault.op == "hand-off");
    CHECK(fault.layer == "sparse 1");
    CHECK(fault.rank == 1);
    CHECK(fault.mismatches == 1);
    CHECK(fault.diagnosis == "rank 1 did not receive what the stage of dense 0 sent");
  }
}

TEST_CASE("every tier carries out what the plan says, for its own tokens") {
  const TempFolder folder;
  const Compared model(model_folder("llama"), split_copy("llama", "tp=2", folder));
  const auto rows = verdict_of(model, {}, true).collectives;
  constexpr i64 kFieldTokens = 3;
  constexpr i64 kTokens = 8;
  REQUIRE(rows.size() % 2 == 0);
  for (size_t i = 0; i < rows.size() / 2; ++i) {
    const engine::CollectiveRow& of_field = rows[i];
    const engine::CollectiveRow& of_f64 = rows[i + rows.size() / 2];
    CHECK(of_field.tier == engine::TierKind::kField);
    CHECK(of_f64.tier == engine::TierKind::kF64);
    CHECK(of_field.agrees());
    CHECK(of_f64.agrees());
    CHECK(of_f64.counted == of_field.counted);
    CHECK(of_f64.counted_elements * kFieldTokens == of_field.counted_elements * kTokens);
  }
}

TEST_CASE("the hand-offs of a pipeline are as many and as large as the plan says") {
  const TempFolder folder;
  const Compared model(model_folder("prototype"), split_copy("prototype", "pp=3,tp=2", folder));
  for (const engine::CollectiveRow& row : verdict_of(model, {}).collectives) {
    CHECK(row.agrees());
    if (row.move != plan::Move::kPermute) continue;
    CHECK(row.axis == "pp");
    CHECK(row.counted == 2);
    // Three tokens of 64 features, twice.
    CHECK(row.counted_elements == 2 * 3 * 64);
  }
}

}  // namespace
}  // namespace shardtool::test

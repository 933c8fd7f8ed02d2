#include "lib/tutorial/proof/faults.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "tests/tutorial/on_devices.h"

using namespace shardtool;
using namespace shardtool::tutorial;

namespace {

constexpr DemoSizes kSizes{6, 10, 5, 7, 1};

/// Report on a fault, which must be the same on every device.
template <Number T>
CaseReport report_of(const std::string& name, int devices) {
  const auto faults = all_faults<T>(kSizes.hidden, devices);
  const auto fault =
      std::find_if(faults.begin(), faults.end(), [&](const auto& f) { return f.name == name; });
  REQUIRE(fault != faults.end());
  const auto systems = all_systems<T>(kSizes, devices);
  const auto one = std::find_if(systems.begin(), systems.end(),
                                [&](const auto& s) { return s.name.starts_with(fault->system); });
  REQUIRE(one != systems.end());
  std::vector<CaseReport> reports(static_cast<size_t>(devices));
  comm::run_embedded(devices, [&](comm::Communicator& comm) {
    reports[static_cast<size_t>(comm.rank())] = plant(comm, *fault, *one);
  });
  for (const CaseReport& report : reports) CHECK(report.diagnosis == reports[0].diagnosis);
  CHECK_FALSE(holds<T>(reports[0].proof, one->expected));
  return reports[0];
}

/// Names of the arrays that differ.
std::vector<std::string> wrong_arrays(const Proof& proof) {
  std::vector<std::string> names;
  for (const ArrayVerdict& verdict : proof.arrays) {
    if (!verdict.is_equal) names.push_back(verdict.name);
  }
  return names;
}

using Names = std::vector<std::string>;

struct Expected {
  std::string fault;
  Names wrong;
  std::string words;  ///< text of the diagnosis
};

const std::vector<Expected> kOnFourDevices{
    {"two shards of layer_1/weights exchanged",
     {"y", "dx", "layer_0/bias", "layer_0/weights"},
     "rank 0 holds row 3 of layer_1/weights where row 0 of layer_1/weights belongs"},
    {"the all_reduce of y left out",
     {"y"},
     "forward communicates none, expected 1 all_reduce of 35; y: ranks 0 and 1 should hold the "
     "same"},
    {"the all_reduce of dx left out",
     {"dx"},
     "dx: the ranks' values add up to it: a sum is missing"},
    {"the gradient of layer_0/weights reduced twice",
     {"layer_0/weights"},
     "gradient of layer_0/weights: 4 times what it should be: it is summed twice"},
    {"two experts exchanged",
     {"y", "dx", "expert_0/layer_0/bias", "expert_0/layer_0/weights", "expert_0/layer_1/weights",
      "expert_1/layer_0/bias", "expert_1/layer_0/weights", "expert_1/layer_1/weights"},
     "rank 0 holds row 0 of expert_1/layer_0/weights where row 0 of expert_0/layer_0/weights "
     "belongs"},
    {"the tail of hidden // devices dropped",
     {"y", "dx", "layer_0/bias", "layer_0/weights", "layer_1/weights"},
     "gradient of layer_0/weights: the ranks hold 8 of its 10 columns: the tail is dropped"},
};

template <Number T>
void check_faults_on_four() {
  CHECK(all_faults<T>(kSizes.hidden, 4).size() == kOnFourDevices.size());
  for (const Expected& expected : kOnFourDevices) {
    CAPTURE(expected.fault);
    const CaseReport report = report_of<T>(expected.fault, 4);
    CHECK(wrong_arrays(report.proof) == expected.wrong);
    CHECK_MESSAGE(report.diagnosis.find(expected.words) != std::string::npos, report.diagnosis);
  }
}

TEST_CASE("every planted fault is seen in the arrays that it touches, and named, in the field") {
  check_faults_on_four<Field>();
}

TEST_CASE("the same faults are seen and named in f64") {
  check_faults_on_four<double>();
}

TEST_CASE("exchanged shards of W1 do not show in its own gradient: all arrays are compared") {
  for (int devices = 2; devices <= 5; ++devices) {
    const Proof proof = report_of<Field>("two shards of layer_1/weights exchanged", devices).proof;
    CHECK_FALSE(proof.array("y").is_equal);
    CHECK_FALSE(proof.array("dx").is_equal);
    CHECK_FALSE(proof.array("layer_0/weights").is_equal);
    CHECK(proof.array("layer_1/weights").is_equal);
    CHECK(proof.adjoint == 1);
  }
}

TEST_CASE("exchanged experts change the output on the smallest batches too: both have rows") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const auto systems = all_systems<Field>({2, 2, 2, 2, seed}, 2);
    const SystemCase<Field>& experts = systems.back();
    CHECK(experts.example.assignment == Assignment{0, 1});
    const auto is_seen = on_devices<Field>(2, [&](Device<Field>& device) {
      const auto exchanged = with_exchanged_experts(experts.example.parameters);
      return !report_on(device, experts, exchanged).proof.array("y").is_equal;
    });
    CHECK(is_seen == std::vector<bool>{true, true});
  }
}

TEST_CASE("on one device, where values cannot tell, the counts do") {
  for (const std::string name : {"the all_reduce of y left out", "the all_reduce of dx left out",
                                 "the gradient of layer_0/weights reduced twice"}) {
    const CaseReport report = report_of<Field>(name, 1);
    CHECK(wrong_arrays(report.proof).empty());
    CHECK(report.diagnosis.find("expected") != std::string::npos);
  }
}

/// Sums correctly, with a superfluous row of zeros.
class WastefulDevice final : public Device<Field> {
 public:
  using Device::Device;
  Matrix<Field> all_reduce(const Matrix<Field>& summand) override {
    const Matrix<Field> zeros(1, summand.columns());
    const auto longer = joined<Field>(std::vector{summand, zeros}, Axis::kRows);
    return slice(Device::all_reduce(longer), Axis::kRows, {0, summand.rows()});
  }
};

TEST_CASE("a collective that carries more than it has to is told, though every value is right") {
  for (const int devices : {1, 3}) {
    const SystemCase<Field> one = all_systems<Field>(kSizes, devices).at(1);
    REQUIRE(one.name == "column->row");
    comm::run_embedded(devices, [&](comm::Communicator& comm) {
      WastefulDevice device(comm);
      const CaseReport report = report_on<Field>(device, one, one.example.parameters);
      CHECK(wrong_arrays(report.proof).empty());
      CHECK_FALSE(holds<Field>(report.proof, one.expected));
      CHECK(report.diagnosis ==
            "forward communicates 1 all_reduce of 40, expected 1 all_reduce of 35; "
            "backward communicates 1 all_reduce of 48, expected 1 all_reduce of 42");
    });
  }
}

/// Bytes that a device gathers while three prove data parallel right, which gathers none itself.
i64 gathered_by_proof(const DemoSizes& sizes) {
  const auto systems = all_systems<Field>(sizes, 3);
  const auto one = std::find_if(systems.begin(), systems.end(),
                                [](const auto& s) { return s.name == "data parallel, sum"; });
  REQUIRE(one != systems.end());
  return on_devices<Field>(
             3,
             [&](Device<Field>& device) {
               CHECK(report_on(device, *one, one->example.parameters).diagnosis.empty());
               return device.counters()[comm::Operation::kAllGather].bytes;
             })
      .front();
}

TEST_CASE(
    "devices compare their own parts: what they say to each other has the size of a verdict") {
  CHECK(gathered_by_proof({6, 10, 5, 7, 1}) == gathered_by_proof({60, 100, 50, 70, 1}));
}

TEST_CASE("faults that cannot show are not planted") {
  const auto names = [](i64 hidden, int devices) {
    Names all;
    for (const auto& fault : all_faults<Field>(hidden, devices)) all.push_back(fault.name);
    return all;
  };
  CHECK(names(10, 1).size() == 4);
  CHECK(names(10, 2).size() == 5);
  CHECK(names(10, 4).size() == 6);
}

TEST_CASE("one element that differs on one device is found there, on every device alike") {
  const auto whole = random_matrix<Field>(7, 4, 1);
  const MatrixPlacement placement = rows(parts_of("rows", 7, 3));
  for (int wrong = 0; wrong < 3; ++wrong) {
    const auto verdicts = on_devices<Field>(3, [&](Device<Field>& device) {
      Matrix<Field> part = cut(whole, placement, device.device_id());
      if (device.device_id() == wrong) part(1, 2) += Field{1};
      return judge<Field>(device, {{"y", whole, placement, part}}).front();
    });
    for (const ArrayVerdict& verdict : verdicts) {
      CHECK_FALSE(verdict.is_equal);
      CHECK(verdict.worst == 1);
      CHECK(verdict.finding == fmt::format("differs, first at rank {} [1, 2]", wrong));
    }
  }
}

TEST_CASE("counts, activations in flight and an adjoint that are wrong are said one by one") {
  comm::SoloCommunicator solo;
  Device<Field> device(solo);
  const auto systems = all_systems<Field>(kSizes, 1);
  const SystemCase<Field>& one = systems.front();
  const Proof right = report_on(device, one, one.example.parameters).proof;
  const auto words = [&](const Proof& proof) {
    const auto system = one.make(device);
    system->load_checkpoint(one.example.parameters);
    CHECK(holds<Field>(proof, one.expected) == (proof.adjoint == 0 && proof.backward == Counts{} &&
                                                proof.most_in_flight == std::vector<i64>{0}));
    return diagnosis(device, *system, one.example, proof, one.expected);
  };
  CHECK(words(right).empty());
  Proof wrong = right;
  wrong.backward.all_gather = {2, 7};
  CHECK(words(wrong) == "backward communicates 2 all_gather of 7, expected none");
  wrong.backward.all_gather = {0, 7};
  CHECK(words(wrong) == "backward communicates 0 all_gather of 7, expected none");
  wrong = right;
  wrong.most_in_flight = {3};
  CHECK(words(wrong) == "the stages keep 3 microbatches, expected 0");
  wrong = right;
  wrong.adjoint = 1;
  CHECK(words(wrong) == "backward is not the adjoint of forward, by 1");
}

TEST_CASE("a number that is not one differs, in the words of its place") {
  comm::SoloCommunicator solo;
  Device<double> device(solo);
  const Matrix<double> expected(2, 2, {1, 2, 3, 4});
  Matrix<double> found = expected;
  found(1, 0) = std::nan("");
  const auto verdict_on = [&](const Matrix<double>& part) {
    return judge<double>(device, {{"y", expected, replicated(), part}}).front();
  };
  const ArrayVerdict verdict = verdict_on(found);
  CHECK_FALSE(verdict.is_equal);
  CHECK(std::isnan(verdict.worst));
  CHECK(verdict.finding == "differs, first at rank 0 [1, 0]");
  CHECK(verdict_on(expected).is_equal);
  CHECK(verdict_on(Matrix<double>(1, 2)).finding == "differs, rank 0 has 1 x 2, expected 2 x 2");
}

}  // namespace

#include "lib/tutorial/shardings/systems.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/tutorial/catalogue.h"
#include "lib/tutorial/shardings/pipeline.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"
#include "tests/tutorial/on_devices.h"
#include "tests/tutorial/textbook.h"

using namespace shardtool;
using namespace shardtool::tutorial;

namespace {

DemoSizes any_sizes(int devices) {
  const auto size = [&] { return *gen::between(devices, devices + 7); };
  return {size(), size(), size(), size(), static_cast<std::uint64_t>(*gen::between(0, 1'000'000))};
}

/// Descriptions of wrong systems; must be the same on all devices.
template <Number T>
std::vector<std::string> wrong_systems(const std::vector<SystemCase<T>>& systems, int devices) {
  return on_devices<T>(devices, [&](Device<T>& device) {
    std::string wrong;
    for (const SystemCase<T>& one : systems) {
      const CaseReport report = report_on(device, one, one.example.parameters);
      if (holds<T>(report.proof, one.expected) && report.diagnosis.empty()) continue;
      wrong += fmt::format("{} ({}): {}\n", one.name, report.proof.adjoint, report.diagnosis);
    }
    return wrong;
  });
}

template <Number T>
void check_all_systems() {
  const auto devices = static_cast<int>(*gen::between(1, 5));
  const DemoSizes sizes = any_sizes(devices);
  const std::vector<std::string> nothing(static_cast<size_t>(devices));
  RC_ASSERT(wrong_systems(all_systems<T>(sizes, devices), devices) == nothing);
  RC_ASSERT(wrong_systems(all_systems_without_biases<T>(sizes, devices), devices) == nothing);
}

/// Records the summands.
template <Number T>
class RecordingDevice final : public Device<T> {
 public:
  using Device<T>::Device;
  Matrix<T> all_reduce(const Matrix<T>& summand) override {
    summands.push_back(summand);
    return Device<T>::all_reduce(summand);
  }
  std::vector<Matrix<T>> summands;
};

using Make = std::function<std::unique_ptr<System<Field>>(Device<Field>&)>;

TEST_CASE("in the field every system is the unsharded one exactly, outputs and all gradients") {
  CHECK(rc::check("sharded = unsharded, field", check_all_systems<Field>));
}

TEST_CASE("in f64 every system agrees with the unsharded one to 1e-12") {
  CHECK(rc::check("sharded = unsharded, f64", check_all_systems<double>));
}

TEST_CASE("a hidden size of 10 is cut over 4 devices without losing a unit") {
  const std::vector<std::string> nothing(4);
  CHECK(wrong_systems(all_systems<Field>({6, 10, 5, 7, 1}, 4), 4) == nothing);
}

TEST_CASE("the worked example has the partial sums that it has on paper") {
  const Textbook<Field> book;
  std::vector<std::vector<Matrix<Field>>> summands(2);
  comm::run_embedded(2, [&](comm::Communicator& comm) {
    RecordingDevice<Field> device(comm);
    const auto system = column_row<Field>(device);
    system->load_checkpoint(book.parameters);
    const bool forward = system->forward(book.x) == book.y;
    const Parameters<Field> gradients = system->backward(book.g);
    const bool backward = gradients.at("dx") == book.gradients.at("dx");
    if (forward && backward) summands[comm.rank()] = device.summands;
  });
  using Summands = std::vector<Matrix<Field>>;
  CHECK(summands[0] == Summands{matrix_of<Field>({{1, 1}}), matrix_of<Field>({{0, 1}})});
  CHECK(summands[1] == Summands{matrix_of<Field>({{12, -6}}), matrix_of<Field>({{0, 3}})});
}

TEST_CASE("the worked example comes out of every system that one row of input allows") {
  const Textbook<Field> book;
  const std::vector<Make> makes{
      unsharded<Field>, column_row<Field>, row_column<Field>,
      [](Device<Field>& device) { return std::make_unique<Pipeline<Field>>(device, 1); }};
  for (const Make& make : makes) {
    const auto right = on_devices<Field>(2, [&](Device<Field>& device) {
      const auto system = make(device);
      system->load_checkpoint(book.parameters);
      const int here = device.device_id();
      const bool forward = system->forward(cut(book.x, system->input(1), here)) ==
                           cut(book.y, system->output(1), here);
      const auto gradients = system->backward(cut(book.g, system->output(1), here));
      const MatrixPlacement dx = system->input_gradient(1);
      const auto* found = find(gradients, "dx");
      const Matrix<Field> nothing;
      return forward &&
             (found == nullptr ? nothing : *found) == cut(book.gradients.at("dx"), dx, here);
    });
    CHECK(right == std::vector<bool>{true, true});
  }
}

TEST_CASE("an average over devices is the sum divided by their number, a sum is not divided") {
  const auto example = random_layers<Field>({4, 6, 5}, 7, 3);
  for (const auto make : {data_parallel<Field>, fully_sharded<Field>}) {
    const auto right = on_devices<Field>(3, [&](Device<Field>& device) {
      const auto gradients_of = [&](GradientReduction reduction) {
        const auto system = make(device, reduction);
        system->load_checkpoint(example.parameters);
        return run_both_ways(device, *system, example).gradients;
      };
      const auto sum = gradients_of(GradientReduction::kSum);
      bool is_right = true;
      for (const auto& [name, average] : gradients_of(GradientReduction::kAverage)) {
        // dx belongs to one device's rows only and is not averaged.
        const Field n{name == kInputGradient ? 1U : 3U};
        is_right &= scaled(average, n) == sum.at(name);
        is_right &= (average == sum.at(name)) == (name == kInputGradient);
      }
      return is_right;
    });
    CHECK(right == std::vector<bool>{true, true, true});
  }
}

TEST_CASE("every device keeps its own part of the parameters and no more") {
  const auto example = random_layers<Field>({8, 10, 8}, 8, 3);
  const auto kept = [&](const Make& make) {
    return on_devices<Field>(4, [&](Device<Field>& device) {
      const auto system = make(device);
      system->load_checkpoint(example.parameters);
      size_t n = 0;
      for (const auto& [name, array] : system->held()) n += array.values().size();
      return n;
    });
  };
  using Sizes = std::vector<size_t>;
  // 8 x 10 + 10 + 10 x 8 + 8 numbers; columns and rows of hidden are 3, 3, 2, 2.
  CHECK(kept(unsharded<Field>) == Sizes{178, 178, 178, 178});
  CHECK(kept(column_row<Field>) == Sizes{59, 59, 42, 42});
  CHECK(kept([](Device<Field>& device) {
          return fully_sharded<Field>(device, GradientReduction::kSum);
        }) == Sizes{45, 45, 44, 44});
}

TEST_CASE("more devices than there is to cut is an error that says what is too small") {
  const auto code_of = [](const Make& make, const std::vector<i64>& sizes, i64 batch) {
    const auto example = random_layers<Field>(sizes, batch, 1);
    return testing::error_of([&] {
      return on_devices<Field>(4, [&](Device<Field>& device) {
        const auto system = make(device);
        system->load_checkpoint(example.parameters);
        run_both_ways(device, *system, example);
        return 0;
      });
    });
  };
  const auto message_of = [&](const Make& make, const std::vector<i64>& sizes, i64 batch) {
    const auto error = code_of(make, sizes, batch);
    if (!error || error->code() != ErrorCode::kEmptyShard) return std::string("no empty shard");
    return error->message();
  };
  const Make averaged = [](Device<Field>& d) {
    return data_parallel(d, GradientReduction::kAverage);
  };
  CHECK(message_of(column_row<Field>, {5, 3, 5}, 5) ==
        "rank 3 of 4 would hold none of the 3 hidden units");
  CHECK(message_of(row_column<Field>, {3, 5, 5}, 5) ==
        "rank 3 of 4 would hold none of the 3 input features");
  CHECK(message_of(row_column<Field>, {5, 5, 2}, 5) ==
        "rank 2 of 4 would hold none of the 2 output features");
  CHECK(message_of(averaged, {5, 5, 5}, 3) ==
        "rank 3 of 4 would hold none of the 3 rows of the batch");
  CHECK(message_of(sequence_parallel<Field>, {5, 5, 5}, 3) ==
        "rank 3 of 4 would hold none of the 3 rows of the sequence");
  const auto three_layers = code_of(column_row<Field>, {5, 5, 5, 5}, 5);
  REQUIRE(three_layers.has_value());
  CHECK(three_layers->code() == ErrorCode::kUnsupported);
}

TEST_CASE("backward without forward is refused") {
  comm::SoloCommunicator solo;
  Device<Field> device(solo);
  const auto system = unsharded(device);
  const auto example = random_layers<Field>({2, 3, 2}, 2, 1);
  system->load_checkpoint(example.parameters);
  CHECK_ERROR(kInternal, system->backward(example.g));
  system->infer(example.x);
  CHECK_ERROR(kInternal, system->backward(example.g));
  system->forward(example.x);
  CHECK(system->backward(example.g).size() == 5);
}

TEST_CASE("rows go to any experts: none to some, all to one, an odd number to each device") {
  const TwoLayers sizes{3, 4, 2};
  const std::vector<Assignment> assignments{
      {2, 2, 2, 2, 2}, {0, 0, 0, 0, 4}, {4, 3, 2, 1, 0}, {1}, {0, 1, 0, 4, 4, 4, 3}};
  for (const Assignment& assignment : assignments) {
    auto example = random_experts<Field>(sizes, 5, static_cast<i64>(assignment.size()), 3);
    example.assignment = assignment;
    SystemCase<Field> one;
    one.name = "experts";
    one.example = example;
    one.reference = reference_of(example, 1);
    one.make = [&](Device<Field>& device) { return expert_parallel(device, assignment); };
    const i64 numbers = static_cast<i64>(assignment.size()) * (sizes.in + sizes.out);
    one.expected = {{.all_to_all = {2, numbers}}, {.all_to_all = {2, numbers}}};
    for (const int devices : {1, 2, 3, 5}) {
      one.expected.most_in_flight.assign(static_cast<size_t>(devices), 0);
      const std::vector<std::string> nothing(static_cast<size_t>(devices));
      CHECK(wrong_systems<Field>({one}, devices) == nothing);
    }
  }
}

TEST_CASE("experts that are not there, and batches of another size, are refused") {
  comm::SoloCommunicator solo;
  Device<Field> device(solo);
  const auto example = random_experts<Field>({3, 4, 2}, 2, 5, 3);
  const auto load = [&](const Assignment& assignment, const Parameters<Field>& parameters) {
    const auto system = expert_parallel(device, assignment);
    system->load_checkpoint(parameters);
    return system->infer(example.x);
  };
  CHECK_ERROR(kUnknownName, load({0, 1, 2, 0, 1}, example.parameters));
  CHECK_ERROR(kUnknownName, load({0, 1, -1, 0, 1}, example.parameters));
  CHECK_ERROR(kShapeMismatch, load({0, 1}, example.parameters));
  CHECK_ERROR(kUnknownName, load({0}, random_layers<Field>({3, 4, 2}, 5, 1).parameters));
  Parameters<Field> gap = example.parameters;
  gap["expert_3/layer_0/weights"] = gap["expert_1/layer_0/weights"];
  CHECK_ERROR(kUnknownName, load({0, 1, 0, 0, 1}, gap));
}

}  // namespace

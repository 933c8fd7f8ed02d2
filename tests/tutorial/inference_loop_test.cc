#include <doctest/doctest.h>

#include "lib/tutorial/catalogue.h"
#include "tests/support/allocated_bytes.h"
#include "tests/support/throws.h"
#include "tests/tutorial/on_devices.h"
#include "tests/tutorial/processes.h"
#include "tests/tutorial/streams.h"

using namespace shardtool;
using namespace shardtool::tutorial;

namespace {

TEST_CASE("every system streams inputs to outputs in order and ends on every device") {
  for (int devices = 1; devices <= 5; ++devices) {
    for (const auto& one : all_systems<Field>(kStreamSizes, devices)) {
      CAPTURE(one.name);
      CAPTURE(devices);
      const auto inputs = inputs_for(one, 12);
      const auto outputs = on_devices<Field>(devices, [&](Device<Field>& device) {
        auto result = stream(device, one, inputs);
        // No message is left in flight: the next one received is the next one sent.
        const auto sum = device.all_reduce(matrix_of<Field>({{1}}));
        if (sum != matrix_of<Field>({{devices}})) result.clear();
        return result;
      });
      CHECK(outputs.front() == expected_outputs(one, inputs));
      for (int device = 1; device < devices; ++device) CHECK(outputs[device].empty());
    }
  }
}

TEST_CASE_TEMPLATE("streams go through processes, and all of them end", Processes, Tcp, Mpi) {
  if (!can_run<Processes>()) return;
  const comm::Launched launched = comm::launch(Processes::kName, 3, "stream");
  CHECK(launched.status == 0);
  CHECK(launched.said == std::vector<std::string>{"every output is right", "ended", "ended"});
}

TEST_CASE("a stream that is empty ends at once, and the next one can begin") {
  for (const auto& one : all_systems<Field>(kStreamSizes, 3)) {
    const auto inputs = inputs_for(one, 2);
    const auto outputs = on_devices<Field>(3, [&](Device<Field>& device) {
      if (!stream(device, one, {}).empty()) return std::vector<Matrix<Field>>{};
      return stream(device, one, inputs);
    });
    CHECK(outputs.front() == expected_outputs(one, inputs));
  }
}

TEST_CASE("an input that fails, or has too few rows, ends every device with that error") {
  for (const auto& one : all_systems<Field>(kStreamSizes, 3)) {
    const auto error = testing::error_of([&] {
      return on_devices<Field>(3, [&](Device<Field>& device) {
        const auto system = one.make(device);
        system->load_checkpoint(one.example.parameters);
        int n = 0;
        system->inference_loop(
            [&]() -> std::optional<Matrix<Field>> {
              if (n++ == 3) throw Error(ErrorCode::kUnreadable, "the input broke off");
              return one.example.x;
            },
            [](const Matrix<Field>&) {});
        return 0;
      });
    });
    REQUIRE(error.has_value());
    CHECK(error->message() == "the input broke off");
  }
}

TEST_CASE("no more inputs are taken ahead of the outputs than there are devices") {
  for (int devices = 1; devices <= 4; ++devices) {
    for (const auto& one : all_systems<Field>(kStreamSizes, devices)) {
      CAPTURE(one.name);
      const auto most_ahead = on_devices<Field>(devices, [&](Device<Field>& device) {
        const auto system = one.make(device);
        system->load_checkpoint(one.example.parameters);
        int ahead = 0;
        int most = 0;
        int left = 20;
        system->inference_loop(
            [&]() -> std::optional<Matrix<Field>> {
              if (left-- == 0) return std::nullopt;
              most = std::max(most, ++ahead);
              return one.example.x;
            },
            [&](const Matrix<Field>&) { --ahead; });
        return most;
      });
      CHECK(most_ahead.front() == (one.name.starts_with("pipeline") ? devices : 1));
    }
  }
}

TEST_CASE("a long stream needs no more memory than a short one") {
  if (!test::can_count_allocations()) return;
  const DemoSizes sizes{32, 48, 32, 64, 1};
  constexpr int kInputs = 300;
  // A leaked input on one device would be 64 x 32 numbers of 8 bytes: 16 KiB each time.
  constexpr double kAllowed = 16.0 * 1024 * 60;
  for (const auto& one : all_systems<double>(sizes, 3)) {
    CAPTURE(one.name);
    double early = 0;
    double late = 0;
    on_devices<double>(3, [&](Device<double>& device) {
      const auto system = one.make(device);
      system->load_checkpoint(one.example.parameters);
      int n_inputs = 0;
      int n_outputs = 0;
      system->inference_loop(
          [&]() -> std::optional<Matrix<double>> {
            if (n_inputs++ == kInputs) return std::nullopt;
            return one.example.x;
          },
          [&](const Matrix<double>&) {
            ++n_outputs;
            if (n_outputs == 30) early = static_cast<double>(test::allocated_bytes());
            if (n_outputs == kInputs - 10) late = static_cast<double>(test::allocated_bytes());
          });
      return 0;
    });
    CHECK(late > 0);
    CHECK(late - early < kAllowed);
  }
}

}  // namespace

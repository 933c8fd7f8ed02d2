#include "lib/tutorial/device.h"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/support/generators.h"
#include "tests/support/throws.h"
#include "tests/tutorial/on_devices.h"

using namespace shardtool;
using namespace shardtool::tutorial;

namespace {

using FieldDevice = Device<Field>;
using FieldMatrix = Matrix<Field>;

FieldMatrix numbers(i64 rows, i64 columns, int rank) {
  return random_matrix<Field>(rows, columns, static_cast<std::uint64_t>(100 + rank));
}

FieldMatrix sum_of(const std::vector<FieldMatrix>& all) {
  return std::accumulate(all.begin() + 1, all.end(), all.front(),
                         [](const FieldMatrix& a, const FieldMatrix& b) { return plus(a, b); });
}

TEST_CASE("a matrix survives the way through bytes, and half of one is noticed") {
  for (const FieldMatrix& matrix : {FieldMatrix(), FieldMatrix(0, 3), numbers(2, 3, 0)}) {
    CHECK(decoded<Field>(encoded(matrix)) == matrix);
  }
  const std::string bytes = encoded(numbers(2, 3, 0));
  CHECK_ERROR(kInternal, decoded<Field>(bytes.substr(0, 9)));
  CHECK_ERROR(kInternal, decoded<Field>(bytes.substr(0, bytes.size() - sizeof(Field))));
}

TEST_CASE("all_gather, all_reduce and reduce_scatter are the sums and joins of what was given") {
  CHECK(rc::check("collectives = arithmetic", [] {
    const auto n = static_cast<int>(*gen::between(1, 5));
    const i64 length = *gen::between(0, 9);
    const Axis axis = *rc::gen::element(Axis::kRows, Axis::kColumns);
    const Parts parts = parts_or_nothing(length, n);
    const auto given = [&](int rank, i64 along) {
      return axis == Axis::kRows ? numbers(along, 3, rank) : numbers(3, along, rank);
    };
    std::vector<FieldMatrix> whole;
    std::vector<FieldMatrix> pieces;
    for (int rank = 0; rank < n; ++rank) {
      whole.push_back(given(rank, length));
      pieces.push_back(given(rank, rank));
    }
    const auto found = on_devices<Field>(n, [&](FieldDevice& device) {
      const int rank = device.device_id();
      return std::vector{device.all_gather(pieces[rank], axis), device.all_reduce(whole[rank]),
                         device.reduce_scatter(whole[rank], axis, parts)};
    });
    for (int rank = 0; rank < n; ++rank) {
      RC_ASSERT(found[rank][0] == joined<Field>(pieces, axis));
      RC_ASSERT(found[rank][1] == sum_of(whole));
      RC_ASSERT(found[rank][2] == slice(sum_of(whole), axis, parts[rank]));
    }
  }));
}

TEST_CASE("all_reduce combines the devices' numbers by any operation") {
  const auto largest = [](double a, double b) { return std::max(a, b); };
  const auto found = on_devices<double>(3, [&](Device<double>& device) {
    const double own = device.device_id() == 1 ? 7 : -2;
    const Matrix<double> part(1, 2, {own, own + 1});
    return std::vector{device.all_reduce(part, largest),
                       device.all_reduce(part, std::multiplies<double>())};
  });
  for (const auto& results : found) {
    CHECK(results[0] == Matrix<double>(1, 2, {7, 8}));
    CHECK(results[1] == Matrix<double>(1, 2, {28, 8}));
  }
}

TEST_CASE("all_to_all puts what the devices gave in their order, and back again") {
  CHECK(rc::check("all_to_all twice = identity", [] {
    const auto n = static_cast<int>(*gen::between(1, 5));
    // Device r gives counts[r][j] rows to device j.
    std::vector<std::vector<i64>> counts(n, std::vector<i64>(n));
    for (auto& row : counts) {
      for (i64& count : row) count = *gen::between(0, 3);
    }
    const auto parts = [](const std::vector<i64>& sizes) {
      Parts result;
      i64 begin = 0;
      for (const i64 size : sizes) {
        result.push_back({begin, begin + size});
        begin += size;
      }
      return result;
    };
    const auto found = on_devices<Field>(n, [&](FieldDevice& device) {
      const int rank = device.device_id();
      std::vector<i64> from_each;
      for (const auto& row : counts) from_each.push_back(row[rank]);
      const Parts to = parts(counts[rank]);
      const FieldMatrix mine = numbers(to.back().end, 2, rank);
      const FieldMatrix theirs = device.all_to_all(mine, Axis::kRows, to);
      const FieldMatrix back = device.all_to_all(theirs, Axis::kRows, parts(from_each));
      std::vector<FieldMatrix> expected;
      for (int source = 0; source < n; ++source) {
        const Parts sent = parts(counts[source]);
        expected.push_back(slice(numbers(sent.back().end, 2, source), Axis::kRows, sent[rank]));
      }
      return theirs == joined<Field>(expected, Axis::kRows) && back == mine;
    });
    for (const bool is_right : found) RC_ASSERT(is_right);
  }));
}

TEST_CASE("streams between two devices keep their order and have an end") {
  const auto received = on_devices<Field>(3, [](FieldDevice& device) {
    const int next = (device.device_id() + 1) % 3;
    const int before = (device.device_id() + 2) % 3;
    // All send first, which must not block.
    for (i64 i = 0; i < 20; ++i) device.send(next, numbers(i, 1, device.device_id()));
    device.send_async(next, numbers(1, 5, device.device_id())).wait();
    device.send_end(next);
    i64 n = 0;
    while (const auto matrix = device.receive_next(before)) {
      const auto expected = n < 20 ? numbers(n, 1, before) : numbers(1, 5, before);
      if (*matrix != expected) return i64{-1};
      ++n;
    }
    device.barrier();
    return n;
  });
  CHECK(received == std::vector<i64>{21, 21, 21});
}

TEST_CASE("a device counts calls and numbers of each kind, not what they are made of") {
  const auto counted = on_devices<Field>(2, [](FieldDevice& device) {
    device.census("a few letters");
    const comm::Counters before = device.counters();
    device.all_reduce(numbers(2, 2, 0));
    device.all_reduce(numbers(2, 2, 0));
    device.all_gather(numbers(1, 2, 0), Axis::kRows);
    device.reduce_scatter(numbers(2, 3, 0), Axis::kRows, parts_of("rows", 2, 2));
    device.all_to_all(numbers(2, 4, 0), Axis::kRows, parts_of("rows", 2, 2));
    device.send(1 - device.device_id(), numbers(1, 1, 0));
    device.receive(1 - device.device_id());
    return device.counts_since(before);
  });
  const Counts expected{{1, 2}, {2, 8}, {1, 6}, {1, 8}, {1, 1}};
  CHECK(counted == std::vector{expected, expected});
  CHECK(to_string(expected) ==
        "1 all_gather of 2, 2 all_reduce of 8, 1 reduce_scatter of 6, 1 all_to_all of 8, 1 send of "
        "1");
  CHECK(to_string(Counts{}) == "none");
}

}  // namespace

#include "tests/comm/laws.h"

#include <array>
#include <functional>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "kernels/xxh3/xxh3.h"
#include "lib/comm/embedded.h"
#include "lib/comm/reduce.h"

namespace shardtool::comm {
namespace {

using Texts = std::vector<std::string>;

/// Messages that every process can compute: by sender, receiver and step of a law.
class Messages {
 public:
  explicit Messages(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t number(std::uint64_t step, int from, int to = 0) const {
    std::uint64_t x = seed_ * 0x9e3779b97f4a7c15U + step * 0x100000001b3U +
                      static_cast<std::uint64_t>(from) * 4099U + static_cast<std::uint64_t>(to);
    x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9U;
    return (x ^ (x >> 29)) * 0x94d049bb133111ebU >> 11;
  }

  std::string text(std::uint64_t step, int from, int to = 0) const {
    constexpr std::array<size_t, 8> kSizes{0, 1, 2, 7, 64, 1000, 70'000, (1U << 20U) + 3};
    const std::uint64_t number_here = number(step, from, to);
    std::string bytes(kSizes[number_here % kSizes.size()], '\0');
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<char>((number_here >> (i % 40)) + i);
    }
    return bytes;
  }

  Texts texts(std::uint64_t step, int size) const {
    Texts all;
    for (int rank = 0; rank < size; ++rank) all.push_back(text(step, rank));
    return all;
  }

 private:
  std::uint64_t seed_;
};

/// One process under test, which checks its results.
class Witness {
 public:
  Witness(Communicator& comm, std::uint64_t seed) : comm_(comm), messages_(seed) {}

  Communicator& comm() { return comm_; }
  const Messages& messages() const { return messages_; }

  void got(std::string_view law, const std::string& bytes, const std::string& expected) {
    if (bytes != expected) {
      throw std::logic_error(std::string(law) + ": process " + std::to_string(comm_.rank()) +
                             " of " + std::to_string(comm_.size()) + " got " +
                             std::to_string(bytes.size()) + " other bytes, expected " +
                             std::to_string(expected.size()));
    }
    digest_ += bytes.size() < 40 ? bytes : kernels::xxh3_hex(std::as_bytes(std::span(bytes)));
    digest_ = kernels::xxh3_hex(std::as_bytes(std::span(digest_)));
  }
  void got(std::string_view law, const Texts& all, const Texts& expected) {
    got(law, std::to_string(all.size()), std::to_string(expected.size()));
    for (size_t i = 0; i < all.size(); ++i) got(law, all[i], expected[i]);
  }
  template <class T>
  void got(std::string_view law, const std::vector<T>& values, const std::vector<T>& expected) {
    const auto bytes = [](const std::vector<T>& list) {
      return std::string(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(T));
    };
    got(law, bytes(values), bytes(expected));
  }
  const std::string& digest() const { return digest_; }

 private:
  Communicator& comm_;
  Messages messages_;
  std::string digest_;
};

void gathers(Witness& witness) {
  Communicator& comm = witness.comm();
  const Messages& messages = witness.messages();
  for (const std::uint64_t step : {10U, 11U}) {
    const Texts all = messages.texts(step, comm.size());
    const std::string mine = messages.text(step, comm.rank());
    witness.got("all_gather", comm.all_gather(mine), all);
    comm.barrier();
  }
}

void broadcasts(Witness& witness) {
  Communicator& comm = witness.comm();
  for (int from = 0; from < comm.size(); ++from) {
    const std::string expected = witness.messages().text(20, from);
    witness.got("broadcast", comm.broadcast(from, comm.rank() == from ? expected : "ignored"),
                expected);
  }
}

void exchanges(Witness& witness) {
  Communicator& comm = witness.comm();
  Texts to_each;
  Texts expected;
  for (int other = 0; other < comm.size(); ++other) {
    to_each.push_back(witness.messages().text(30, comm.rank(), other));
    expected.push_back(witness.messages().text(30, other, comm.rank()));
  }
  witness.got("all_to_all", comm.all_to_all(std::move(to_each)), expected);
}

/// Every process sends to all processes first, itself included, then receives.
void sends_first(Witness& witness) {
  Communicator& comm = witness.comm();
  const std::string large(3'000'000, 'l');
  for (int to = 0; to < comm.size(); ++to) {
    comm.send(to, witness.messages().text(40, comm.rank(), to));
    comm.send(to, large);
    comm.send(to, witness.messages().text(41, comm.rank(), to));
  }
  // A collective between send and receive must not affect either.
  witness.got("all_gather between messages", comm.all_gather("x"),
              Texts(static_cast<size_t>(comm.size()), "x"));
  for (int from = comm.size() - 1; from >= 0; --from) {
    witness.got("receive", comm.receive(from), witness.messages().text(40, from, comm.rank()));
    witness.got("receive", comm.receive(from), large);
    witness.got("receive", comm.receive(from), witness.messages().text(41, from, comm.rank()));
  }
}

/// Sends messages round a ring while others are in flight.
void sends_round(Witness& witness) {
  Communicator& comm = witness.comm();
  const int next = (comm.rank() + 1) % comm.size();
  const int before = (comm.rank() + comm.size() - 1) % comm.size();
  std::vector<PendingSend> pending;
  for (std::uint64_t step = 50; step < 55; ++step) {
    pending.push_back(comm.send_async(next, witness.messages().text(step, comm.rank())));
  }
  comm.barrier();
  for (std::uint64_t step = 50; step < 55; ++step) {
    witness.got("send_async", comm.receive(before), witness.messages().text(step, before));
  }
  for (PendingSend& send : pending) {
    send.wait();
    send.wait();
  }
}

/// Splits into two colors with keys that rotate the ranks, every third process in none; then splits
/// each part into single processes.
void splits(Witness& witness) {
  Communicator& comm = witness.comm();
  const auto color = [](int rank) { return rank % 3 == 2 ? -1 : rank % 2; };
  Texts expected;
  for (int rank = comm.size() - 1; rank >= 0; --rank) {
    if (color(rank) == color(comm.rank())) expected.push_back(witness.messages().text(60, rank));
  }
  const auto part = comm.split(color(comm.rank()), -comm.rank());
  witness.got("split", std::to_string(part == nullptr), std::to_string(color(comm.rank()) < 0));
  if (part) {
    witness.got("split", part->all_gather(witness.messages().text(60, comm.rank())), expected);
    const auto alone = part->split(part->rank(), 0);
    witness.got("split of a split", alone->all_gather("alone"), Texts{"alone"});
    const auto again = part->split(0, 0);
    part->send((part->rank() + 1) % part->size(), "of the part");
    again->send((again->rank() + 1) % again->size(), "of the part of the part");
    const int before = (again->rank() + again->size() - 1) % again->size();
    witness.got("split of a split", again->receive(before), "of the part of the part");
    witness.got("split", part->receive(before), "of the part");
  }
  const auto same = comm.split(0, 0);
  witness.got("split of all", std::to_string(same->rank()), std::to_string(comm.rank()));
}

template <class T, class Op = std::plus<>>
void reduces(Witness& witness, std::uint64_t step, const std::function<T(std::uint64_t)>& value,
             Op op = {}) {
  Communicator& comm = witness.comm();
  const auto given = [&](int rank, size_t n) {
    std::vector<T> values;
    for (size_t i = 0; i < n; ++i) {
      values.push_back(value(witness.messages().number(step + i, rank, static_cast<int>(n))));
    }
    return values;
  };
  for (const size_t n : {0U, 1U, 3U, 5000U}) {
    std::vector<T> expected = given(0, n);
    for (int rank = 1; rank < comm.size(); ++rank) {
      const std::vector<T> other = given(rank, n);
      for (size_t i = 0; i < n; ++i) expected[i] = op(expected[i], other[i]);
    }
    std::vector<T> values = given(comm.rank(), n);
    all_reduce<T>(comm, values, op);
    witness.got("all_reduce", values, expected);

    // Uneven: the last rank has the remainder.
    std::vector<size_t> counts(static_cast<size_t>(comm.size()));
    size_t left = n;
    for (size_t rank = 0; rank + 1 < counts.size(); ++rank) {
      counts[rank] = left / (rank % 2 == 0 ? 3 : 1);
      left -= counts[rank];
    }
    counts.back() = left;
    const auto mine = static_cast<size_t>(comm.rank());
    const auto begin = std::accumulate(counts.begin(), counts.begin() + comm.rank(), size_t{0});
    values = given(comm.rank(), n);
    witness.got("reduce_scatter", reduce_scatter(comm, std::span<const T>(values), counts, op),
                std::vector<T>(expected.begin() + static_cast<i64>(begin),
                               expected.begin() + static_cast<i64>(begin + counts[mine])));
  }
}

/// Sums of small integers, which have the same bits in any order. Engines without sums of their own
/// keep the same digest.
void sums_natively(Witness& witness) {
  Communicator& comm = witness.comm();
  if (!comm.has_native_sums(Dtype::kF32)) return;
  const auto size = static_cast<size_t>(comm.size());
  const auto given = [&](int rank, size_t i) {
    return static_cast<float>(witness.messages().number(5000 + i, rank) % 100);
  };
  std::vector<float> values(3 * size);
  std::vector<float> expected(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = given(comm.rank(), i);
    for (int rank = 0; rank < comm.size(); ++rank) expected[i] += given(rank, i);
  }
  const std::string_view bytes{reinterpret_cast<const char*>(values.data()),
                               values.size() * sizeof(float)};
  const std::string part = comm.native_reduce_scatter(Dtype::kF32, bytes);
  comm.native_all_reduce(Dtype::kF32, std::as_writable_bytes(std::span(values)));
  const auto own = reinterpret_cast<const char*>(expected.data()) +
                   static_cast<size_t>(comm.rank()) * part.size();
  if (values == expected && part == std::string_view(own, part.size())) return;
  throw std::logic_error("a native sum is wrong");
}

void counts(Witness& witness) {
  const Counters before = witness.comm().counters();
  Communicator& comm = witness.comm();
  const auto size = static_cast<i64>(comm.size());
  const auto added = [&](Operation operation, i64 calls, i64 bytes) {
    const Count now = comm.counters()[operation];
    witness.got(name_of(operation),
                std::to_string(now.calls - before[operation].calls) + " " +
                    std::to_string(now.bytes - before[operation].bytes),
                std::to_string(calls) + " " + std::to_string(bytes));
  };
  comm.all_gather("abc");
  comm.broadcast(0, comm.rank() == 0 ? "abcde" : "");
  comm.all_to_all(Texts(static_cast<size_t>(size), "xy"));
  std::vector<double> values(4);
  all_reduce<double>(comm, values);
  std::vector<size_t> even(static_cast<size_t>(size), 1);
  std::vector<float> each(static_cast<size_t>(size));
  reduce_scatter(comm, std::span<const float>(each), even);
  comm.send(comm.rank(), "to self");
  comm.receive(comm.rank());
  added(Operation::kAllGather, 1, 3);
  added(Operation::kBroadcast, 1, 5);
  added(Operation::kAllToAll, 1, 2 * size);
  added(Operation::kAllReduce, 1, 32);
  added(Operation::kReduceScatter, 1, 4 * size);
  added(Operation::kSend, 1, 7);
  added(Operation::kReceive, 1, 7);
  added(Operation::kBarrier, 0, 0);
  added(Operation::kSplit, 0, 0);
}

}  // namespace

std::string keep_laws(Communicator& comm, std::uint64_t seed) {
  Witness witness(comm, seed);
  gathers(witness);
  broadcasts(witness);
  exchanges(witness);
  sends_first(witness);
  sends_round(witness);
  splits(witness);
  constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61U) - 1;
  reduces<std::uint64_t>(
      witness, 1000, [](std::uint64_t x) { return x % kPrime; },
      [](std::uint64_t a, std::uint64_t b) { return (a + b) % kPrime; });
  reduces<i64>(
      witness, 4000, [](std::uint64_t x) { return static_cast<i64>(x); }, Maximum());
  reduces<double>(witness, 2000, [](std::uint64_t x) { return 1.0 / static_cast<double>(x | 1U); });
  reduces<float>(witness, 3000, [](std::uint64_t x) { return 1.0F / static_cast<float>(x | 1U); });
  sums_natively(witness);
  counts(witness);
  return witness.digest();
}

void check_laws(const Run& run, int size, std::uint64_t seed) {
  const auto digests = [&](const Run& by) {
    Texts all(static_cast<size_t>(size));
    by(size,
       [&](Communicator& comm) { all[static_cast<size_t>(comm.rank())] = keep_laws(comm, seed); });
    return all;
  };
  if (digests(run) != digests(run_embedded)) {
    throw std::logic_error("other digests than those of the embedded engine");
  }
}

}  // namespace shardtool::comm

#include "lib/comm/nccl/nccl_communicator.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kernels/encode/encode.h"
#include "lib/base/error.h"
#include "lib/comm/embedded.h"
#include "lib/comm/engine.h"
#include "lib/comm/machine.h"
#include "tests/comm/launched.h"
#include "tests/comm/laws.h"
#include "tests/comm/threads.h"
#include "tests/support/fake_nccl.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::comm {
namespace {

using std::chrono::milliseconds;
using test::has_fake_nccl;
using test::kFakeNccl;
using test::turn;

const std::string kNotBuilt = "this program was built without NCCL";

/// Runs threads that communicate over the fake NCCL and meet over the embedded engine.
void run_fake(int size, const std::function<void(Communicator&)>& body) {
  run_embedded(size, [&](Communicator& comm) {
    const auto nccl = open_nccl(comm.split(0, 0), {kFakeNccl, kFakeNccl});
    body(*nccl);
  });
}

std::optional<Error> fake_fails(int size, const std::function<void(Communicator&)>& body) {
  return testing::error_of([&] { return run_fake(size, body), 0; });
}

TEST_CASE("what goes through NCCL's calls keeps the laws of a communicator, with a stand-in") {
  if (!has_fake_nccl()) return;
  for (int size = 1; size <= 5; ++size) {
    CAPTURE(size);
    CHECK_NOTHROW(check_laws(run_fake, size, static_cast<std::uint64_t>(200 + size)));
  }
  CHECK(turn<int>("fake_nccl_aborts") == 0);
}

/// Numbers of a rank that every type holds, with sums that it holds.
std::vector<float> small_integers(int rank, size_t count) {
  std::vector<float> numbers;
  for (size_t i = 0; i < count; ++i) {
    numbers.push_back(
        static_cast<float>(static_cast<int>((i * 7 + 3 * static_cast<size_t>(rank)) % 11) - 5));
  }
  return numbers;
}

std::string stored(Dtype type, const std::vector<float>& numbers) {
  std::string bytes(numbers.size() * static_cast<size_t>(bits(type) / 8), '\0');
  kernels::from_floats(type, numbers.data(), std::ssize(numbers),
                       reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

TEST_CASE("native sums are NCCL's all_reduce and reduce_scatter, and count their bytes") {
  if (!has_fake_nccl()) return;
  for (int size = 1; size <= 5; ++size) {
    for (const Dtype type : {Dtype::kF16, Dtype::kBF16, Dtype::kF32}) {
      CAPTURE(size);
      CAPTURE(to_string(type));
      const size_t part = 3;
      const size_t count = part * static_cast<size_t>(size);
      std::vector<float> sum(count);
      for (int rank = 0; rank < size; ++rank) {
        const std::vector<float> of_rank = small_integers(rank, count);
        for (size_t i = 0; i < count; ++i) sum[i] += of_rank[i];
      }
      const std::string expected = stored(type, sum);
      const int sums = turn<int>("fake_nccl_sums");
      const auto summed = turn<std::uint64_t>("fake_nccl_bytes_summed");
      run_fake(size, [&](Communicator& comm) {
        CHECK(comm.has_native_sums(type));
        std::string values = stored(type, small_integers(comm.rank(), count));
        const std::string own = comm.native_reduce_scatter(type, values);
        CHECK(own == expected.substr(static_cast<size_t>(comm.rank()) * own.size(), own.size()));
        CHECK(own.size() * static_cast<size_t>(size) == values.size());
        comm.native_all_reduce(type, std::as_writable_bytes(std::span(values)));
        CHECK(values == expected);
        const auto bytes = static_cast<i64>(values.size());
        CHECK(comm.counters()[Operation::kAllReduce] == Count{1, bytes});
        CHECK(comm.counters()[Operation::kReduceScatter] == Count{1, bytes});
      });
      CHECK(turn<int>("fake_nccl_sums") == sums + 2 * size);
      CHECK(turn<std::uint64_t>("fake_nccl_bytes_summed") ==
            summed + 2 * static_cast<std::uint64_t>(size) * expected.size());
    }
  }
}

TEST_CASE("parts of the same length are gathered by NCCL's all_gather, others by broadcasts") {
  if (!has_fake_nccl()) return;
  for (const bool equal : {true, false}) {
    const int before = turn<int>("fake_nccl_gathers");
    run_fake(3, [&](Communicator& comm) {
      const auto text = [&](int rank) {
        return std::string(equal ? 4 : static_cast<size_t>(rank) + 2,
                           static_cast<char>('a' + rank));
      };
      CHECK(comm.all_gather(text(comm.rank())) ==
            std::vector<std::string>{text(0), text(1), text(2)});
    });
    CHECK((turn<int>("fake_nccl_gathers") > before) == equal);
  }
}

TEST_CASE("sums of types, or in parts, that NCCL does not have are refused") {
  if (!has_fake_nccl()) return;
  run_fake(2, [](Communicator& comm) {
    std::string values(6, '\0');
    CHECK_FALSE(comm.has_native_sums(Dtype::kF8E4M3));
    CHECK_ERROR(kInternal,
                comm.native_all_reduce(Dtype::kF8E4M3, std::as_writable_bytes(std::span(values))));
    CHECK_ERROR(kInternal, comm.native_reduce_scatter(Dtype::kF16, values));
  });
  run_embedded(2, [](Communicator& comm) {
    std::string values(4, '\0');
    CHECK_FALSE(comm.has_native_sums(Dtype::kF32));
    CHECK_ERROR(kInternal,
                comm.native_all_reduce(Dtype::kF32, std::as_writable_bytes(std::span(values))));
  });
}

TEST_CASE("an operation of NCCL that never ends is cut off after the deadline") {
  if (!has_fake_nccl()) return;
  const int aborts_before = turn<int>("fake_nccl_aborts");
  const auto start = std::chrono::steady_clock::now();
  turn<void>("fake_nccl_stalls", true);
  const auto error = fake_fails(3, [](Communicator& comm) {
    comm.set_deadline(milliseconds(500), milliseconds(500));
    comm.all_gather("x");
  });
  turn<void>("fake_nccl_stalls", false);
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kPeerLost);
  CHECK(error->message().find("NCCL did not end all_gather in time") != std::string::npos);
  CHECK(turn<int>("fake_nccl_aborts") == aborts_before + 3);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
}

TEST_CASE("an error that NCCL finds in the background ends all") {
  if (!has_fake_nccl()) return;
  const auto error = fake_fails(3, [](Communicator& comm) {
    comm.barrier();
    turn<void>("fake_nccl_fails", true);
    comm.broadcast(0, "x");
  });
  turn<void>("fake_nccl_fails", false);
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kPeerLost);
  CHECK(error->message().find("failed: NCCL: unhandled system error") != std::string::npos);
}

TEST_CASE("a GPU that fails under NCCL is told as one, and ends all") {
  if (!has_fake_nccl()) return;
  const auto error = fake_fails(3, [](Communicator& comm) {
    comm.barrier();
    turn<void>("fake_nccl_copies_fail", true);
    comm.all_gather("x");
  });
  turn<void>("fake_nccl_copies_fail", false);
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kDeviceFailed);
  CHECK(error->exit_status() == 6);
  CHECK(error->message() == "cudaMemcpyAsync: an error");
}

TEST_CASE("a GPU that fails before NCCL begins in one process is told by all") {
  if (!has_fake_nccl()) return;
  constexpr int kFailing = 1;
  const test::TempFolder folder;
  std::vector<std::optional<Error>> all(3);
  turn<void>("fake_nccl_fails_on", kFailing);
  {
    std::vector<std::jthread> processes;
    for (int rank = 0; rank < 3; ++rank) {
      processes.emplace_back([&, rank] {
        EngineChoice choice;
        choice.engine = Engine::kNccl;
        choice.nccl = {kFakeNccl, kFakeNccl};
        choice.launch = Launch{"mpirun", rank, 3, "job"};
        choice.meeting.folder = folder.path();
        all[static_cast<size_t>(rank)] =
            testing::error_of([&] { return connect(choice)->all_gather("x"); });
      });
    }
  }
  turn<void>("fake_nccl_fails_on", -1);
  for (const auto& error : all) {
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kDeviceFailed);
    CHECK(error->message() == "cudaStreamCreateWithFlags: an error");
    CHECK(testing::has_note(*error, "process", "1 of 3"));
  }
}

TEST_CASE("a rank that ends or aborts is named by those who wait for it over NCCL") {
  if (!has_fake_nccl()) return;
  const auto ended = fake_fails(3, [](Communicator& comm) {
    if (comm.rank() != 1) comm.all_gather("x");
  });
  REQUIRE(ended);
  CHECK(ended->message() == "process 1 of 3 ended before its share of all_gather");
  const auto aborted = fake_fails(3, [](Communicator& comm) {
    if (comm.rank() == 1) throw Error(ErrorCode::kConfig, "no heads");
    comm.all_gather("x");
  });
  REQUIRE(aborted);
  CHECK(aborted->code() == ErrorCode::kConfig);
}

/// Errors of three processes over TCP. One ends after it has told the lengths of an all_gather, so
/// that NCCL waits for its part in vain.
std::vector<std::optional<Error>> errors_without(int ending) {
  constexpr int kSize = 3;
  const std::uint64_t length = 1;
  const std::string length_message(reinterpret_cast<const char*>(&length), sizeof length);
  std::vector<std::optional<Error>> all(kSize);
  run_processes(kSize, [&](Communicator& comm) {
    all[static_cast<size_t>(comm.rank())] = testing::error_of([&] {
      auto control = comm.split(0, 0);
      Communicator& messages = *control;
      const auto nccl = open_nccl(std::move(control), {kFakeNccl, kFakeNccl});
      // Ends the test if the loss is not seen.
      nccl->set_deadline(std::chrono::seconds(60), std::chrono::seconds(60));
      if (comm.rank() == ending) {
        messages.all_to_all(std::vector<std::string>(kSize, length_message));
      } else {
        nccl->all_gather("x");
      }
      return 0;
    });
  });
  return all;
}

TEST_CASE("an operation of NCCL ends after a process that takes part in it, and names it") {
  if (!has_fake_nccl()) return;
  const int aborts_before = turn<int>("fake_nccl_aborts");
  std::vector<std::vector<std::optional<Error>>> errors(3);
  {
    std::vector<std::jthread> launches;
    for (int ending = 0; ending < 3; ++ending) {
      launches.emplace_back(
          [&, ending] { errors[static_cast<size_t>(ending)] = errors_without(ending); });
    }
  }
  for (size_t ending = 0; ending < 3; ++ending) {
    for (size_t rank = 0; rank < 3; ++rank) {
      CAPTURE(ending);
      CAPTURE(rank);
      const auto& error = errors[ending][rank];
      REQUIRE(error.has_value() == (rank != ending));
      if (!error) continue;
      CHECK(error->code() == ErrorCode::kPeerLost);
      CHECK(error->message() == "process " + std::to_string(ending) + " of 3 ended without a word");
    }
  }
  CHECK(turn<int>("fake_nccl_aborts") == aborts_before + 6);
}

TEST_CASE("no device, and fewer than processes of a machine, are told to all") {
  if (!has_fake_nccl()) return;
  for (const int devices : {0, 2}) {
    turn<void>("fake_nccl_devices", devices);
    const auto error = fake_fails(3, [](Communicator&) {});
    turn<void>("fake_nccl_devices", 8);
    REQUIRE(error);
    CHECK(error->exit_status() == 6);
    const std::string expected = devices == 0
                                     ? "cudaGetDeviceCount: no CUDA-capable device is detected"
                                     : "there are 2 GPUs for 3 or more processes of one machine";
    CAPTURE(error->message());
    CHECK(error->message().ends_with(expected));
  }
}

TEST_CASE("processes that see one GPU each use it, whatever their number on the machine") {
  if (!has_fake_nccl()) return;
  turn<void>("fake_nccl_devices", 1);
  const auto error = fake_fails(3, [](Communicator& comm) {
    CHECK(comm.all_gather(std::to_string(comm.rank())) == std::vector<std::string>{"0", "1", "2"});
  });
  turn<void>("fake_nccl_devices", 8);
  CHECK_FALSE(error);
}

TEST_CASE("two processes with one GPU are told so") {
  if (!has_fake_nccl()) return;
  turn<void>("fake_nccl_gpus_are_one", true);
  const auto error = fake_fails(3, [](Communicator&) {});
  turn<void>("fake_nccl_gpus_are_one", false);
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kEngineMissing);
  CHECK(error->message() == "processes 0 and 1 of one machine have the same GPU, 0000:00:00.0");
}

TEST_CASE("a call that fails inside a group ends the group before NCCL is aborted") {
  if (!has_fake_nccl()) return;
  const int before = turn<int>("fake_nccl_aborts_in_groups");
  const int aborts_before = turn<int>("fake_nccl_aborts");
  const auto error = fake_fails(3, [](Communicator& comm) {
    comm.barrier();
    turn<void>("fake_nccl_sends_fail", true);
    comm.all_gather("x");
  });
  turn<void>("fake_nccl_sends_fail", false);
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kPeerLost);
  CHECK(turn<int>("fake_nccl_aborts") == aborts_before + 3);
  CHECK(turn<int>("fake_nccl_aborts_in_groups") == before);
}

TEST_CASE("the n-th process of a machine takes the n-th GPU, or the only one that it sees") {
  CHECK(gpu_of(0, 1) == 0);
  CHECK(gpu_of(5, 1) == 0);
  CHECK(gpu_of(3, 8) == 3);
  CHECK_ERROR(kEngineMissing, gpu_of(2, 2));
  CHECK_ERROR(kEngineMissing, gpu_of(0, 0));
}

TEST_CASE("the libraries that NCCL runs on are found with their versions") {
  if (!has_fake_nccl()) return;
  EngineChoice options;
  options.engine = Engine::kNccl;
  options.nccl = {kFakeNccl, kFakeNccl};
  CHECK(found(options) == "NCCL 2.28.3 and CUDA runtime 13.2, " + kFakeNccl + " and " + kFakeNccl);
}

TEST_CASE("libraries that are missing are named, and a build without NCCL says so") {
  for (const bool has_runtime : {false, true}) {
    EngineChoice options;
    options.engine = Engine::kNccl;
    options.nccl = {"/nowhere/libnccl.so.2", has_runtime ? kFakeNccl : "/nowhere/libcudart.so"};
    CHECK_ERROR(kEngineMissing, found(options));
    const auto error = testing::error_of([&] { return connect(options); });
    REQUIRE(error);
    CHECK(error->exit_status() == 6);
    if (kFakeNccl.empty()) {
      CHECK(error->message() == kNotBuilt);
      continue;
    }
    CHECK(error->message() ==
          (has_runtime ? "NCCL cannot be opened" : "the CUDA runtime cannot be opened"));
    CHECK(error->notes().at(0).second.find("/nowhere/") != std::string::npos);
    CHECK(error->help_lines().at(0) ==
          "install it, or, beside the Python module, the extra `cuda`");
  }
}

TEST_CASE("those for whom the first process never comes give up in time") {
  const test::TempFolder folder;
  for (const Engine engine : {Engine::kTcp, Engine::kNccl}) {
    EngineChoice options;
    options.engine = engine;
    options.launch = Launch{"torchrun", 1, 2, "job"};
    options.meeting.folder = folder.path();
    options.meeting_time = milliseconds(100);
    const auto error = testing::error_of([&] { return connect(options); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kPeerLost);
    CHECK(error->message() == "process 0 of 2 could not be reached");
  }
}

TEST_CASE("a GPU that is here carries a communicator of one") {
  EngineChoice options;
  options.engine = Engine::kNccl;
  std::unique_ptr<Communicator> comm;
  const auto error = testing::error_of([&] { return comm = connect(options), 0; });
  if (error) {
    CHECK(error->exit_status() == 6);
    std::cout << "SKIPPED: " << error->message() << "\n";
    return;
  }
  CHECK_NOTHROW(keep_laws(*comm, 7));
}

TEST_CASE("processes with a GPU each keep the laws, with the digest of the embedded engine") {
  for (const int size : {2, 4, 8}) {
    const Launched launched = launch("nccl", size, "laws", size);
    constexpr int kEngineMissing = 6;
    if (launched.status == kEngineMissing) {
      std::cout << "SKIPPED: " << size << " processes: " << launched.said.front() << "\n";
      return;
    }
    CHECK(launched.status == 0);
    std::vector<std::string> expected(static_cast<size_t>(size));
    run_embedded(size, [&](Communicator& comm) {
      expected[static_cast<size_t>(comm.rank())] =
          keep_laws(comm, static_cast<std::uint64_t>(size));
    });
    CHECK(launched.said == expected);
  }
}

}  // namespace
}  // namespace shardtool::comm

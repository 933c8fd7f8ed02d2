// Runs in bounded memory.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>

#include "lib/exec/files/read_back.h"
#include "lib/exec/stream.h"
#include "lib/layout/layout.h"
#include "tests/support/temp_folder.h"

namespace shardtool::exec {
namespace {

/// Memory of this process that no file backs, in bytes.
i64 anonymous_bytes() {
  std::ifstream status("/proc/self/status");  // proc(5): "RssAnon:     1234 kB"
  for (std::string word; status >> word;) {
    i64 kibi = 0;
    if (word == "RssAnon:" && status >> kibi) return kibi << 10;
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

/// Runs `work` in a process of its own and returns by how many bytes its memory has grown at most
/// whenever it called `look`; -1 if it throws.
i64 growth_of(const std::function<void(const std::function<void()>& look)>& work) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<i64> most = 0;
    try {
      const i64 before = anonymous_bytes();
      work([&] {
        const i64 grown = anonymous_bytes() - before;
        for (i64 known = most; grown > known && !most.compare_exchange_weak(known, grown);) {
        }
      });
    } catch (const std::exception&) {
      most = -1;
    }
    const i64 grown = most;
    ::_exit(::write(ends[1], &grown, sizeof(grown)) == sizeof(grown) ? 0 : 1);
  }
  ::close(ends[1]);
  i64 grown = -1;
  CHECK(::read(ends[0], &grown, sizeof(grown)) == sizeof(grown));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return grown;
}

/// A file of this many bytes, zeros without blocks.
std::string sparse_file(const test::TempFolder& folder, i64 bytes) {
  const std::string path = folder.write("sparse", "");
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(bytes));
  return path;
}

/// Bytes that a thread needs beside its buffers, such as the list of a chunk's pieces.
constexpr i64 kThreadBytes = 192 << 10;

TEST_CASE("buffers stay within the budget, whatever the number of threads") {
  constexpr i64 kRows = 1 << 15;
  constexpr i64 kColumns = 1 << 10;
  const test::TempFolder folder;
  const std::string path = sparse_file(folder, kRows * kColumns);
  const mesh::Mesh mesh = mesh::parse_mesh("tp=2");
  TensorMove move{"tensor", Dtype::kU8, {kRows, kColumns}, {}, {}};
  const auto holders = [](const layout::Layout& layout) {
    return std::make_shared<const index::HolderSet>(layout.holders());
  };
  move.from = {holders(layout::Layout::replicated(mesh::Mesh(), move.shape)), {{0, 0}}};
  move.to = {holders(layout::Layout(
                 mesh, move.shape,
                 {{layout::whole(kRows), 1, {}}, {layout::split(kColumns, {{"tp"}}), 1, {}}})),
             {{0, 0}, {1, 0}}};
  const std::vector<TensorMove> moves{move};
  for (const i64 budget : {kMinMemory, i64{9} << 20, i64{16} << 20}) {
    for (const int threads : {1, 3, 4, 16}) {
      CAPTURE(budget);
      CAPTURE(threads);
      Resources resources;
      resources.max_memory = budget;
      resources.threads = threads;
      const i64 grown = growth_of([&](const std::function<void()>& look) {
        std::vector<SourceFile> sources;
        sources.emplace_back(path);
        const ChunkSink looking{[](size_t, const ChunkPlan&) {},
                                [&](std::span<const FilledChunk>, Turnstile&) { look(); },
                                [](size_t) {}};
        stream(moves, sources, resources, looking);
      });
      CHECK(grown > 0);
      CHECK(grown <= budget + threads * kThreadBytes);
    }
  }
}

TEST_CASE("reading back stays within the budget, whatever the number of threads") {
  constexpr i64 kRanges = 64;
  constexpr i64 kBytes = 4 << 20;
  const test::TempFolder folder;
  const std::string path = sparse_file(folder, kRanges * kBytes);
  std::vector<WrittenRange> ranges;
  for (i64 i = 0; i < kRanges; ++i) ranges.push_back({0, i * kBytes, kBytes, {}});
  for (const int threads : {1, 4, 16}) {
    CAPTURE(threads);
    Resources resources;
    resources.max_memory = kMinMemory;
    resources.threads = threads;
    const i64 grown = growth_of([&](const std::function<void()>& look) {
      std::vector<SourceFile> files;
      files.emplace_back(path);
      resources.on_progress = [&](const Progress&) { look(); };
      read_back(ranges, files, resources);
    });
    CHECK(grown > 0);
    CHECK(grown <= kMinMemory + threads * kThreadBytes);
  }
}

}  // namespace
}  // namespace shardtool::exec

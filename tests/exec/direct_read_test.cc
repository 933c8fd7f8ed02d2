#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "tests/exec/moved_files.h"
#include "tests/support/faulty_syscalls.h"
#include "tests/support/played_device.h"
#include "tests/support/throws.h"

/// Direct reads on devices with various alignment requirements.
namespace shardtool::exec {
namespace {

using testing::Call;
using testing::FaultySyscalls;
using testing::PlayedDevice;

/// The smallest buffers, so that a chunk is a third of a MiB.
Resources small_chunks() {
  Resources options;
  options.max_memory = kMinMemory;
  return options;
}

/// One tensor with rows of 1 KiB, cut over two devices.
Case halves(i64 rows, int axis = 0) {
  const Shape shape{rows, 128};
  std::vector<layout::LayoutAxis> axes;
  for (size_t a = 0; a < shape.size(); ++a) {
    const bool is_cut = a == static_cast<size_t>(axis);
    axes.push_back({is_cut ? layout::split(shape[a], {{"tp"}}) : layout::whole(shape[a]), 1, {}});
  }
  return {"tensor", Dtype::kF64, layout::Layout::replicated(mesh::Mesh(), shape),
          layout::Layout(mesh::parse_mesh("tp=2"), shape, axes)};
}

Outcome run_direct(const Case& test, i64 gap) {
  return run_copy(test, gap, small_chunks(), IoMode::kDirect);
}

TEST_CASE("direct reads land right and where the device takes them, whatever it takes") {
  CHECK(rc::check("every read is aligned as announced", [] {
    const PlayedDevice device(*rc::gen::element(4, 8, 512, 4096));
    const i64 gap = *gen::between(0, 700) * *rc::gen::element(1, 8, 512);
    Case test = halves(*gen::between(1, 900), static_cast<int>(*gen::between(0, 1)));
    if (*gen::between(0, 1) == 1) std::swap(test.from, test.to);
    RC_ASSERT(is_right(test, run_direct(test, gap), gap));
    RC_ASSERT(device.refused() == 0);
  }));
}

TEST_CASE("a staged input of several blocks is taken whole, whatever its rows") {
  const PlayedDevice device(4096);
  const Shape shape{1501, 900};  // of 4 bits: rows of 450 bytes
  const Case narrow{
      "tensor", Dtype::kF4, layout::Layout::replicated(mesh::Mesh(), shape),
      layout::Layout(mesh::parse_mesh("tp=3"), shape,
                     {{layout::whole(1501), 1, {}}, {layout::split(900, {{"tp"}}), 1, {}}})};
  for (const Case& test : {halves(1500, 0), halves(1501, 1), narrow}) {
    CHECK(is_right(test, run_copy(test, 8, {}, IoMode::kDirect), 8));
  }
  CHECK(device.refused() == 0);
}

/// Rows of the second half are shifted by up to the gap against their pages in the source.
TEST_CASE("rows are read in place when the device takes their address, else beside it") {
  const Case test = halves(1200);
  for (const i64 alignment : {4, 8, 512, 4096}) {
    for (const i64 gap : {2, 4, 8, 24, 512, 1544, 2048}) {
      CAPTURE(alignment);
      CAPTURE(gap);
      const PlayedDevice device(alignment);
      CHECK(is_right(test, run_direct(test, gap), gap));
      CHECK(device.reads() > 0);
      CHECK((device.reads_inside_pages() > 0) == (gap % alignment == 0));
      CHECK(device.refused() == 0);
    }
  }
}

TEST_CASE("a device that does not say what it takes is given pages") {
  const Case test = halves(1200);
  const PlayedDevice device(4096, PlayedDevice::Announces::kNothing);
  CHECK(is_right(test, run_direct(test, 8), 8));
  CHECK(device.reads() > 0);
  CHECK(device.refused() == 0);
}

TEST_CASE("reads in place may fall short or be refused: the rest comes through the cache") {
  const Case test = halves(1200);
  FaultySyscalls faults;
  const PlayedDevice device(4);
  for (const size_t longest : {4096U, 12288U, 5000U}) {
    faults.shorten(Call::kPreadv, longest);
    CHECK(is_right(test, run_direct(test, 8), 8));
  }
  faults.heal();
  for (const int refused : {1, 2, 3}) {
    faults.fail(Call::kPreadv, refused, EINVAL);
    CHECK(is_right(test, run_direct(test, 8), 8));
  }
  CHECK(device.reads_inside_pages() > 0);
}

TEST_CASE("an error of a read in place is an error, and names the tensor") {
  const Case test = halves(1200);
  FaultySyscalls faults;
  const PlayedDevice device(4);
  faults.fail_all(Call::kPreadv, EIO);
  try {
    run_direct(test, 8);
    FAIL("copied");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnreadable);
    CHECK(error.tensor_name() == "tensor");
  }
}

TEST_CASE("a source that ends inside a chunk that is read in place is told to have changed") {
  const PlayedDevice device(4);
  const test::TempFolder folder;
  const i64 bytes = 1 << 20;
  write_bytes(folder / "source", Bytes(8 + bytes - 5));
  const auto one = std::make_shared<const index::HolderSet>(index::HolderSet::whole({bytes}));
  const std::vector<TensorMove> moves{
      {"t", Dtype::kU8, {bytes}, {one, {{0, 8}}}, {one, {{0, 0}}}, {}}};
  store::File target = store::create_new(folder / "target");
  store::allocate(target, bytes);
  std::vector<SourceFile> sources;
  sources.emplace_back(folder / "source", IoMode::kDirect);
  std::vector<TargetFile> targets;
  targets.emplace_back(target);
  CHECK_ERROR(kInputChanged, copy(moves, sources, targets, small_chunks()));
  CHECK(device.reads_inside_pages() > 0);
}

TEST_CASE("a file that is written to can be opened, as an output is that is read back") {
  const test::TempFolder folder;
  const store::File file = store::create_new(folder / "output");
  std::atomic<bool> is_done = false;
  std::thread writer([&] {
    for (i64 size = 1; !is_done; size = size % 4096 + 1) store::set_size(file, size);
  });
  const auto open_it_often = [&] {
    for (int i = 0; i < 3000; ++i) SourceFile opened(file.path());
  };
  CHECK_NOTHROW(open_it_often());
  is_done = true;
  writer.join();
}

}  // namespace
}  // namespace shardtool::exec

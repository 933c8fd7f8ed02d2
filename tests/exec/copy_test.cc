#include "lib/exec/copy.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include "lib/base/interruption.h"
#include "lib/index/coverage.h"
#include "tests/exec/moved_files.h"
#include "tests/support/throws.h"

namespace shardtool::exec {
namespace {

using layout::whole;

layout::Layout rows_over(const std::string& mesh, Shape shape, layout::AxisExpr rows) {
  std::vector<layout::LayoutAxis> axes{{std::move(rows), 1, {}}};
  for (size_t a = 1; a < shape.size(); ++a) axes.push_back({whole(shape[a]), 1, {}});
  return layout::Layout(mesh::parse_mesh(mesh), shape, axes);
}

TEST_CASE("a copy between any two layouts writes what an element-by-element slicer writes") {
  CHECK(rc::check("copy = slicer", [] {
    const Shape shape = *gen::shape();
    const Case test{"tensor", *rc::gen::element(Dtype::kU8, Dtype::kBF16, Dtype::kF32, Dtype::kF64),
                    *gen::layout(shape), *gen::layout(shape)};
    const i64 gap = *gen::between(0, 9);
    Resources options;
    options.threads = static_cast<int>(*gen::between(1, 4));
    RC_ASSERT(is_right(test, run_copy(test, gap, options), gap));
  }));
}

/// Copies a tensor to the chosen holders of `test.to`. Checks their bytes and hashes, and the
/// digest if they hold the whole tensor.
void check_copy_to_some(const Case& test, const std::vector<int>& chosen) {
  const test::TempFolder folder;
  const Shape& shape = test.from.shape();
  const i64 elements = element_count(shape).value();
  const Bytes whole = reference::numbered(elements, bits(test.dtype));
  const Packed source = pack(shards_of(test.from, test.dtype, whole), 0, 0);
  write_bytes(folder / "source", source.bytes);
  const std::vector<Bytes> shards = shards_of(test.to, test.dtype, whole);
  auto some = std::make_shared<index::HolderSet>(shape);
  std::vector<Bytes> wanted;
  for (const int h : chosen) {
    some->add(test.to.holders().region(h));
    wanted.push_back(shards[static_cast<size_t>(h)]);
  }
  const Packed target = pack(wanted, 0, 5);
  store::File file = store::create_new(folder / "target");
  store::allocate(file, std::ssize(target.bytes));
  std::vector<SourceFile> sources;
  sources.emplace_back(folder / "source");
  std::vector<TargetFile> targets;
  targets.emplace_back(file);
  const auto from = std::make_shared<const index::HolderSet>(test.from.holders());
  const std::vector<TensorMove> moves{
      {"t", test.dtype, shape, {from, source.slots}, {some, target.slots}, {}}};
  const CopiedTensor copied = copy(moves, sources, targets, {}).front();
  RC_ASSERT(read_bytes(folder / "target") == target.bytes);
  for (size_t i = 0; i < wanted.size(); ++i) {
    RC_ASSERT(copied.xxh3[i] == kernels::xxh3(std::as_bytes(std::span(wanted[i]))));
  }
  RC_ASSERT(copied.is_whole == index::covers(*some));
  if (copied.is_whole) RC_ASSERT(copied.digest == digest_of(elements, test.dtype));
}

TEST_CASE("some destinations of a layout get what they get together with the others") {
  CHECK(rc::check("copy to some = slicer", [] {
    const Shape shape = *gen::shape();
    const Case test{"t", Dtype::kBF16, *gen::layout(shape), *gen::layout(shape)};
    std::vector<int> chosen;
    for (int h = 0; h < test.to.holders().size(); ++h) {
      if (chosen.empty() || *rc::gen::arbitrary<bool>()) chosen.push_back(h);
    }
    check_copy_to_some(test, chosen);
  }));
}

TEST_CASE("boxes that no destination wants are no part of the copy") {
  const layout::Layout grid(
      mesh::parse_mesh("a=2,b=2"), {4, 6},
      {{layout::split(4, {{"a"}}), 1, {}}, {layout::split(6, {{"b"}}), 1, {}}});
  const layout::Layout one = layout::Layout::replicated(mesh::Mesh(), {4, 6});
  CHECK(rc::check("diagonal", [&] {
    check_copy_to_some({"t", Dtype::kBF16, one, grid}, {0, 3});
    check_copy_to_some({"t", Dtype::kBF16, grid, grid}, {1, 2});
  }));
}

/// Read modes that the file system supports; the page cache first.
std::vector<IoMode> reading_modes() {
  const test::TempFolder folder;
  write_bytes(folder / "file", Bytes(kPageBytes));
  if (store::open_read_direct(folder / "file").is_open())
    return {IoMode::kBuffered, IoMode::kDirect};
  MESSAGE("no direct I/O here: only reads through the page cache are tested");
  return {IoMode::kBuffered};
}

TEST_CASE("tensors larger than every buffer are streamed, rows and columns, whatever the budget") {
  const Shape shape{600, 2048};  // 2.4 MB of BF16 in chunks of a third of a MiB
  const mesh::Mesh mesh = mesh::parse_mesh("tp=4");
  const layout::Layout rows(mesh, shape,
                            {{layout::split(600, {{"tp"}}), 1, {}}, {whole(2048), 1, {}}});
  const layout::Layout columns(mesh, shape,
                               {{whole(600), 1, {}}, {layout::split(2048, {{"tp"}}), 1, {}}});
  const layout::Layout narrow(
      mesh, shape,
      {{whole(600), 1, {}},
       {layout::scale(layout::owners(8, {{0, 5}, {1, 4}, {2, 7}, {3, 6}}, {{"tp"}}), 256), 1, {}}});
  const layout::Layout one = layout::Layout::replicated(mesh::Mesh(), shape);
  Resources options;
  options.max_memory = kMinMemory;
  for (const IoMode reading : reading_modes()) {
    for (const auto& from : {one, rows, columns, narrow}) {
      for (const auto& to : {one, rows, columns, narrow}) {
        const Case test{"tensor", Dtype::kBF16, from, to};
        CAPTURE(layout::to_string(from.axes()[0].expr));
        CAPTURE(layout::to_string(to.axes()[0].expr));
        CHECK(is_right(test, run_copy(test, 8, options, reading), 8));
      }
    }
  }
}

TEST_CASE("a row that is larger than the buffers is cut inside") {
  const Shape shape{2, 1 << 20};
  const Case test{"tensor", Dtype::kU8, layout::Layout::replicated(mesh::Mesh(), shape),
                  layout::Layout(mesh::parse_mesh("tp=2"), shape,
                                 {{whole(2), 1, {}}, {layout::split(1 << 20, {{"tp"}}), 1, {}}})};
  Resources options;
  options.max_memory = kMinMemory;
  CHECK(is_right(test, run_copy(test, 8, options), 8));
}

TEST_CASE("shards whose rows are out of order are hashed as they lie in the file") {
  const Case test{"tensor", Dtype::kF32, layout::Layout::replicated(mesh::Mesh(), {6, 5}),
                  rows_over("tp=2", {6, 5}, layout::owners(6, {{4, 0, 2}, {1, 5, 3}}, {{"tp"}}))};
  CHECK(is_right(test, run_copy(test, 0, {}), 0));
}

TEST_CASE("sub-byte elements move where cuts fall on bytes, and are refused where they do not") {
  const Shape shape{6, 8};
  const auto columns = [&](i64 parts) {
    return layout::Layout(mesh::parse_mesh(fmt::format("tp={}", parts)), shape,
                          {{whole(6), 1, {}}, {layout::split(8, {{"tp"}}), 1, {}}});
  };
  const layout::Layout one = layout::Layout::replicated(mesh::Mesh(), shape);
  CHECK(is_right({"t", Dtype::kF4, one, columns(4)},
                 run_copy({"t", Dtype::kF4, one, columns(4)}, 1, {}), 1));
  CHECK(is_right({"t", Dtype::kF6E2M3, one, columns(2)},
                 run_copy({"t", Dtype::kF6E2M3, one, columns(2)}, 1, {}), 1));
  CHECK_ERROR(kSubByteCut, run_copy({"t", Dtype::kF6E2M3, one, columns(4)}, 1, {}));
}

TEST_CASE("a scalar is copied to every device") {
  const Case test{"scalar", Dtype::kF64, layout::Layout::replicated(mesh::Mesh(), {}),
                  layout::Layout::replicated(mesh::parse_mesh("tp=3"), {})};
  CHECK(is_right(test, run_copy(test, 3, {}), 3));
}

TEST_CASE("an expected digest that differs is refused, with both digests") {
  const test::TempFolder folder;
  write_bytes(folder / "source", reference::numbered(64, 8));
  const auto one = std::make_shared<const index::HolderSet>(index::HolderSet::whole({64}));
  std::vector<TensorMove> moves{{"t", Dtype::kU8, {64}, {one, {{0, 0}}}, {one, {{0, 0}}}, 12345}};
  store::File target = store::create_new(folder / "target");
  store::allocate(target, 64);
  std::vector<SourceFile> sources;
  sources.emplace_back(folder / "source");
  std::vector<TargetFile> targets;
  targets.emplace_back(target);
  CHECK_ERROR(kDataMismatch, copy(moves, sources, targets, {}));
  moves[0].expected_digest = digest_of(64, Dtype::kU8);
  CHECK_NOTHROW(copy(moves, sources, targets, {}));
}

TEST_CASE("an element that no source holds is refused before anything is written") {
  const layout::Layout split = rows_over("tp=2", {6}, layout::split(6, {{"tp"}}));
  index::HolderSet half(Shape{6});
  half.add(split.holders().region(0));
  const auto from = std::make_shared<const index::HolderSet>(half);
  const auto to = std::make_shared<const index::HolderSet>(index::HolderSet::whole({6}));
  const TensorMove move{"t", Dtype::kU8, {6}, {from, {{0, 0}}}, {to, {{0, 0}}}, {}};
  CHECK_ERROR(kCoverage, (check_move(move), 0));
}

TEST_CASE("a budget below the minimum is refused, a cancelled run ends") {
  const Case test{"t", Dtype::kU8, layout::Layout::replicated(mesh::Mesh(), {100}),
                  layout::Layout::replicated(mesh::Mesh(), {100})};
  Resources small;
  small.max_memory = kMinMemory - 1;
  CHECK_ERROR(kMemoryBudget, run_copy(test, 0, small));
  const std::atomic<bool> cancelled = true;
  const Interruptible scope(&cancelled);
  CHECK_ERROR(kInterrupted, run_copy(test, 0, Resources()));
}

}  // namespace
}  // namespace shardtool::exec

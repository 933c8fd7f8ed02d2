// Tensors that no file holds, and boxes of tensors that several holders have.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstring>

#include "lib/exec/copy.h"
#include "lib/exec/files/stored_box.h"
#include "tests/exec/moved_files.h"

namespace shardtool::exec {
namespace {

std::uint16_t computed_element(i64 e) {
  return static_cast<std::uint16_t>(static_cast<std::uint64_t>(e) * 0x9E3779B97F4A7C15 >> 40);
}

/// Stands for the digest of the one stored element behind element e.
std::uint64_t stored_digest(i64 e) {
  return static_cast<std::uint64_t>(e + 1) * 0xD6E8FEB86659FD93;
}

class MadeUp final : public ComputedTensor {
 public:
  explicit MadeUp(const Shape& shape) : columns_(shape.back()) {}

  void compute(const ComputedBox& box, std::span<const SourceFile>,
               ComputedReport& report) const override {
    report.digests.resize(1);
    for (i64 r = 0; r < box.rows; ++r) {
      for (i64 c = 0; c < box.columns; ++c) {
        const i64 e = (box.row + r) * columns_ + box.column + c;
        const std::uint16_t element = computed_element(e);
        std::memcpy(box.memory + r * box.stride + c * 2, &element, sizeof element);
        report.digests[0] ^= stored_digest(e);
        ++report.counts.values;
      }
    }
  }
  void check(const ComputedReport& whole) const override { checked_ = whole.counts.values; }
  int scratch_bits() const override { return 16; }

  mutable i64 checked_ = -1;

 private:
  i64 columns_;
};

/// Copies a made-up tensor to a layout and compares everything with the reference.
bool copies_right(const Shape& shape, const layout::Layout& to, i64 gap, const Resources& options) {
  const i64 n = element_count(shape).value();
  Bytes whole(static_cast<size_t>(n) * 2);
  std::uint64_t digest = 0;
  for (i64 e = 0; e < n; ++e) {
    const std::uint16_t element = computed_element(e);
    std::memcpy(whole.data() + 2 * e, &element, sizeof element);
    digest ^= stored_digest(e);
  }
  const Packed wanted = pack(shards_of(to, Dtype::kBF16, whole), 0, gap);
  const auto made_up = std::make_shared<const MadeUp>(shape);
  TensorMove move{"made up", Dtype::kBF16, shape, {}, {}};
  move.from = {std::make_shared<const index::HolderSet>(index::HolderSet::whole(shape)), {{0, 0}}};
  move.to = {std::make_shared<const index::HolderSet>(to.holders()), wanted.slots};
  move.computed = made_up;
  const test::TempFolder folder;
  store::File target = store::create_new(folder / "target");
  store::allocate(target, std::ssize(wanted.bytes));
  std::vector<TargetFile> targets;
  targets.emplace_back(target);
  const std::vector<CopiedTensor> copied = copy(std::vector{move}, {}, targets, options);
  const ComputedReport report = copied[0].computed.value_or(ComputedReport{});
  const bool is_counted =
      report.counts.values == n && (n == 0 || report.digests == std::vector{digest});
  return read_bytes(folder / "target") == wanted.bytes && copied[0].is_whole && is_counted &&
         made_up->checked_ == n;
}

}  // namespace

TEST_CASE("a computed tensor is copied to any layout, and each stored element counts once") {
  CHECK(rc::check("compute, then slice", [] {
    const Shape shape = *gen::shape();
    RC_PRE(!shape.empty());
    Resources options;
    options.threads = static_cast<int>(*gen::between(1, 4));
    RC_ASSERT(copies_right(shape, *gen::layout(shape), *gen::between(0, 9), options));
  }));
}

TEST_CASE("a computed tensor larger than every buffer is copied chunk by chunk") {
  const Shape shape{3, 600, 1024};
  const mesh::Mesh mesh = mesh::parse_mesh("tp=4");
  Resources options;
  options.max_memory = kMinMemory;
  for (const size_t cut : {0, 1, 2}) {
    std::vector<layout::LayoutAxis> axes;
    for (size_t a = 0; a < shape.size(); ++a) {
      const i64 n = shape[a];
      axes.push_back({a == cut && n > 3 ? layout::split(n, {{"tp"}}) : layout::whole(n), 1, {}});
    }
    CAPTURE(cut);
    CHECK(copies_right(shape, layout::Layout(mesh, shape, axes), 3, options));
  }
}

TEST_CASE("a box of a tensor is read from whichever holders have it") {
  CHECK(rc::check("read box = slice", [] {
    const Shape shape = *gen::shape();
    const layout::Layout layout = *gen::layout(shape);
    const Dtype dtype = *rc::gen::element(Dtype::kU8, Dtype::kBF16, Dtype::kI32);
    const i64 width = bits(dtype) / 8;
    Bytes whole(static_cast<size_t>(element_count(shape).value() * width));
    for (size_t i = 0; i < whole.size(); ++i)
      whole[i] = static_cast<Bytes::value_type>(i * 37 + 11);
    const Packed packed = pack(shards_of(layout, dtype, whole), 0, 3);
    const test::TempFolder folder;
    write_bytes(folder / "source", packed.bytes);
    std::vector<SourceFile> files;
    files.emplace_back(folder / "source");
    std::vector<i64> begin, sizes;
    for (const i64 extent : shape) {
      begin.push_back(*gen::between(0, extent));
      sizes.push_back(*gen::between(0, extent - begin.back()));
    }
    Bytes expected;
    for (i64 e = 0; e < element_count(shape).value(); ++e) {
      bool is_in = true;
      for (i64 a = std::ssize(shape) - 1, rest = e; a >= 0;
           rest /= shape[static_cast<size_t>(a--)]) {
        const auto axis = static_cast<size_t>(a);
        const i64 at = rest % shape[axis] - begin[axis];
        is_in = is_in && at >= 0 && at < sizes[axis];
      }
      if (is_in)
        expected.insert(expected.end(), whole.begin() + e * width, whole.begin() + (e + 1) * width);
    }
    Bytes found(expected.size());
    const MoveSide side{std::make_shared<const index::HolderSet>(layout.holders()), packed.slots};
    read_box({"t", dtype, shape}, side, begin, sizes, files,
             std::as_writable_bytes(std::span(found)));
    RC_ASSERT(found == expected);
  }));
}

}  // namespace shardtool::exec

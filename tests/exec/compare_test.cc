#include "lib/exec/compare.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "tests/exec/moved_files.h"

namespace shardtool::exec {
namespace {

struct Compared {
  Difference difference;
  Packed other;
};

/// Compares layout `to` with `from`; changes one byte of its file if `flip` is not negative.
Compared run_compare(const Case& test, i64 flip) {
  const test::TempFolder folder;
  const Bytes whole =
      reference::numbered(element_count(test.from.shape()).value(), bits(test.dtype));
  const Packed source = pack(shards_of(test.from, test.dtype, whole), 0, 3);
  Compared compared;
  compared.other = pack(shards_of(test.to, test.dtype, whole), 0, 5);
  Bytes changed = compared.other.bytes;
  if (flip >= 0) changed[static_cast<size_t>(flip)] ^= 0x40;
  write_bytes(folder / "source", source.bytes);
  write_bytes(folder / "other", changed);
  const std::vector<TensorMove> moves{
      {test.name,
       test.dtype,
       test.from.shape(),
       {std::make_shared<const index::HolderSet>(test.from.holders()), source.slots},
       {std::make_shared<const index::HolderSet>(test.to.holders()), compared.other.slots},
       {}}};
  std::vector<SourceFile> sources;
  sources.emplace_back(folder / "source");
  std::vector<SourceFile> others;
  others.emplace_back(folder / "other");
  compared.difference = compare(moves, sources, others, {}).front();
  return compared;
}

TEST_CASE("layouts of the same tensor are equal, whatever they are") {
  CHECK(rc::check("compare = equal", [] {
    const Shape shape = *gen::shape();
    const Case test{"t", Dtype::kBF16, *gen::layout(shape), *gen::layout(shape)};
    RC_ASSERT(run_compare(test, -1).difference.bytes == 0);
  }));
}

TEST_CASE(
    "a changed byte is found, with its place in the whole tensor and the holder that has it") {
  CHECK(rc::check("compare finds one byte", [] {
    const Shape shape = *gen::shape();
    const Case test{"t", Dtype::kU8, *gen::layout(shape), *gen::layout(shape)};
    const int holder = static_cast<int>(*gen::between(0, test.to.holders().size() - 1));
    const index::Region region = test.to.holders().region(holder);
    RC_PRE(image_size(region) > 0);
    // First local element that is not padding, and its global position.
    std::vector<i64> local;
    std::vector<i64> global;
    for (const auto& map : region) {
      local.push_back(map.pieces().front().local);
      global.push_back(map.pieces().front().global);
    }
    const i64 at = reference::row_major(local, local_shape(region));
    const Compared clean = run_compare(test, -1);
    const i64 slot = clean.other.slots[static_cast<size_t>(holder)].offset;
    const Compared changed = run_compare(test, slot + at);
    RC_ASSERT(changed.difference.bytes == 1);
    RC_ASSERT(changed.difference.holder == holder);
    RC_ASSERT(changed.difference.first == reference::row_major(global, shape));
  }));
}

}  // namespace
}  // namespace shardtool::exec

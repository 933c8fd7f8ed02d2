#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <atomic>

#include "kernels/crc64/crc64.h"
#include "lib/exec/copy.h"
#include "lib/store/local/syscalls.h"
#include "tests/exec/moved_files.h"
#include "tests/support/throws.h"

/// Many tensors in one run: small ones are read, placed and written together.
namespace shardtool::exec {
namespace {

std::shared_ptr<const index::HolderSet> holders_of(const layout::Layout& layout) {
  return std::make_shared<const index::HolderSet>(layout.holders());
}

/// Dtype and layouts of one kind of tensors.
struct Kind {
  Dtype dtype;
  layout::Layout from;
  layout::Layout to;
  std::shared_ptr<const index::HolderSet> from_holders = holders_of(from);
  std::shared_ptr<const index::HolderSet> to_holders = holders_of(to);
};

/// Files filled from the front: holder h of every tensor is in file h modulo the number of files.
struct Files {
  std::vector<Bytes> content;
  i64 gap = 0;

  std::vector<Slot> add(const std::vector<Bytes>& shards) {
    std::vector<Slot> slots;
    for (size_t h = 0; h < shards.size(); ++h) {
      Bytes& file = content[h % content.size()];
      file.resize(file.size() + static_cast<size_t>(gap));
      slots.push_back({static_cast<int>(h % content.size()), std::ssize(file)});
      file.insert(file.end(), shards[h].begin(), shards[h].end());
    }
    return slots;
  }
};

/// Tensors in files, and the expected output of a copy of some of them.
struct Model {
  test::TempFolder folder;
  std::vector<TensorMove> moves;
  std::vector<Bytes> wholes;
  std::vector<std::vector<Bytes>> shards;  ///< per tensor, per destination
  Files sources;
  Files targets;

  Model(const std::vector<const Kind*>& kinds, size_t files, i64 gap)
      : sources{std::vector<Bytes>(files), gap}, targets{std::vector<Bytes>(files), gap} {
    for (size_t t = 0; t < kinds.size(); ++t) {
      const Kind& kind = *kinds[t];
      Bytes whole = reference::numbered(*element_count(kind.from.shape()), bits(kind.dtype));
      for (auto& byte : whole) byte = static_cast<Bytes::value_type>(byte ^ (37 * t + 11));
      shards.push_back(shards_of(kind.to, kind.dtype, whole));
      moves.push_back({fmt::format("t{}", t),
                       kind.dtype,
                       kind.from.shape(),
                       {kind.from_holders, sources.add(shards_of(kind.from, kind.dtype, whole))},
                       {kind.to_holders, targets.add(shards.back())},
                       {}});
      wholes.push_back(std::move(whole));
    }
  }

  std::vector<CopiedTensor> copy_these(const std::vector<size_t>& order, Resources options) {
    std::vector<SourceFile> from;
    std::vector<store::File> files;
    std::vector<TargetFile> to;
    files.reserve(targets.content.size());
    for (size_t f = 0; f < targets.content.size(); ++f) {
      write_bytes(source(f), sources.content[f]);
      from.emplace_back(source(f));
      files.push_back(store::create_new(target(f)));
      store::allocate(files.back(), std::ssize(targets.content[f]));
      to.emplace_back(files.back());
    }
    return copy({moves, order}, from, to, options);
  }

  /// True if the files have these tensors, and zeros in place of the others.
  bool is_written(const std::vector<size_t>& order) const {
    std::vector<Bytes> expected;
    for (const Bytes& file : targets.content) expected.emplace_back(file.size());
    for (const size_t t : order) {
      for (size_t h = 0; h < shards[t].size(); ++h) {
        const Slot& slot = moves[t].to.slots[h];
        std::copy(shards[t][h].begin(), shards[t][h].end(),
                  expected[static_cast<size_t>(slot.file)].begin() + slot.offset);
      }
    }
    for (size_t f = 0; f < expected.size(); ++f) {
      if (read_bytes(target(f)) != expected[f]) return false;
    }
    return true;
  }

  bool is_reported(size_t t, const CopiedTensor& copied) const {
    for (size_t h = 0; h < shards[t].size(); ++h) {
      if (copied.xxh3[h] != kernels::xxh3(std::as_bytes(std::span(shards[t][h])))) return false;
    }
    return copied.is_whole &&
           copied.digest == kernels::Crc64::of(std::as_bytes(std::span(wholes[t])));
  }

  std::string source(size_t file) const { return folder / fmt::format("source-{}", file); }
  std::string target(size_t file) const { return folder / fmt::format("target-{}", file); }
};

Kind random_kind() {
  const Shape shape = *gen::shape();
  return {*rc::gen::element(Dtype::kU8, Dtype::kBF16, Dtype::kF32), *gen::layout(shape),
          *gen::layout(shape)};
}

Kind rows_kind(i64 rows, i64 columns) {
  const Shape shape{rows, columns};
  return {
      Dtype::kU8, layout::Layout::replicated(mesh::Mesh(), shape),
      layout::Layout(mesh::parse_mesh("tp=2"), shape,
                     {{layout::split(rows, {{"tp"}}), 1, {}}, {layout::whole(columns), 1, {}}})};
}

TEST_CASE("tensors that are moved together are written as each is alone, whatever the order") {
  CHECK(rc::check("many = one by one", [] {
    std::vector<Kind> kinds;
    for (i64 k = *gen::between(1, 3); k > 0; --k) kinds.push_back(random_kind());
    std::vector<const Kind*> of_tensors;
    for (i64 t = *gen::between(1, 20); t > 0; --t) {
      of_tensors.push_back(&kinds[static_cast<size_t>(*gen::between(0, std::ssize(kinds) - 1))]);
    }
    Model model(of_tensors, static_cast<size_t>(*gen::between(1, 3)), *gen::between(0, 1) * 5);
    std::vector<size_t> order;
    for (size_t t = 0; t < of_tensors.size(); ++t) {
      if (*gen::between(0, 5) > 0) order.push_back(t);
    }
    if (*gen::between(0, 1) == 1) std::reverse(order.begin(), order.end());
    Resources options;
    options.threads = static_cast<int>(*gen::between(1, 3));
    const auto copied = model.copy_these(order, options);
    RC_ASSERT(copied.size() == order.size());
    RC_ASSERT(model.is_written(order));
    for (size_t i = 0; i < order.size(); ++i) RC_ASSERT(model.is_reported(order[i], copied[i]));
  }));
}

TEST_CASE("small tensors between large ones, in the smallest budget") {
  const std::vector<Kind> kinds{rows_kind(600, 4096), rows_kind(6, 100), rows_kind(3, 1)};
  std::vector<const Kind*> of_tensors;
  for (int i = 0; i < 300; ++i) of_tensors.push_back(&kinds[i % 50 == 7 ? 0 : 1 + i % 2]);
  Model model(of_tensors, 2, 0);
  std::vector<size_t> order(of_tensors.size());
  for (size_t t = 0; t < order.size(); ++t) order[t] = t;
  Resources options;
  options.max_memory = kMinMemory;
  const auto copied = model.copy_these(order, options);
  CHECK(model.is_written(order));
  for (size_t t = 0; t < order.size(); ++t) CHECK(model.is_reported(t, copied[t]));
}

/// Counts the calls that move data.
struct Calls {
  static std::atomic<int> reads;
  static std::atomic<int> writes;

  static ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) {
    ++reads;
    return store::real_syscalls().preadv(fd, parts, count, offset);
  }
  static ssize_t pwrite(int fd, const void* from, size_t size, off_t offset) {
    ++writes;
    return store::real_syscalls().pwrite(fd, from, size, offset);
  }
};
std::atomic<int> Calls::reads = 0;
std::atomic<int> Calls::writes = 0;

TEST_CASE("a thousand small tensors cost a handful of reads and writes") {
  const Kind kind = rows_kind(64, 16);
  Model model(std::vector<const Kind*>(1000, &kind), 2, 0);
  std::vector<size_t> order(1000);
  for (size_t t = 0; t < order.size(); ++t) order[t] = t;
  store::Syscalls counting = store::real_syscalls();
  counting.preadv = Calls::preadv;
  counting.pwrite = Calls::pwrite;
  const store::ScopedSyscalls replaced(counting);
  Resources options;
  options.threads = 1;
  model.copy_these(order, options);
  CHECK(model.is_written(order));
  CHECK(Calls::reads < 20);
  CHECK(Calls::writes < 20);
}

TEST_CASE("progress counts the bytes that are wanted, and ends with all of them") {
  Kind kind = rows_kind(64, 16);
  kind.to_holders = [&] {
    auto second = std::make_shared<index::HolderSet>(kind.from.shape());
    second->add(kind.to.holders().region(1));
    return second;
  }();
  Model model(std::vector<const Kind*>(10, &kind), 1, 0);
  Progress last;
  Resources options;
  options.on_progress = [&](const Progress& progress) { last = progress; };
  model.copy_these({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, options);
  CHECK(last.bytes_total == 10 * 64 * 16 / 2);
  CHECK(last.bytes_done == last.bytes_total);
}

TEST_CASE("a source that ends early names the first tensor that was read with it") {
  const Kind kind = rows_kind(64, 16);
  Model model(std::vector<const Kind*>(10, &kind), 1, 0);
  model.sources.content[0].resize(9 * 64 * 16 + 5);
  try {
    model.copy_these({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {});
    FAIL("copied");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInputChanged);
    CHECK(error.tensor_name() == "t0");
    REQUIRE(error.notes().size() == 1);
    CHECK(error.notes().front().second == "9 tensors behind it");
  }
}

}  // namespace
}  // namespace shardtool::exec

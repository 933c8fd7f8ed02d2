#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <random>

#include "kernels/cast/cast.h"
#include "kernels/crc64/crc64.h"
#include "kernels/xxh3/xxh3.h"
#include "lib/exec/compare.h"
#include "lib/exec/copy.h"
#include "tests/exec/moved_files.h"

namespace shardtool::exec {
namespace {

/// Random elements, among them many that are too large, too small or NaN.
Bytes random_elements(i64 count, Dtype dtype, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(static_cast<size_t>(count * bits(dtype) / 8));
  for (auto& byte : bytes) byte = static_cast<Bytes::value_type>(random());
  return bytes;
}

struct Cast {
  Bytes bytes;
  kernels::CastCounts counts;
};
Cast cast_of(const Bytes& elements, Dtype from, Dtype to) {
  const i64 n = std::ssize(elements) * 8 / bits(from);
  if (from == to) return {elements, {}};  // copied, and signalling NaN stay so
  Cast cast{Bytes(static_cast<size_t>(n * bits(to) / 8)), {}};
  cast.counts = kernels::cast(from, to, reinterpret_cast<const std::byte*>(elements.data()), n,
                              reinterpret_cast<std::byte*>(cast.bytes.data()));
  return cast;
}

std::uint64_t crc(const Bytes& bytes) {
  return kernels::Crc64::of(std::as_bytes(std::span(bytes)));
}

/// Tensors of one pair of layouts in two files, and what the second must hold after the cast.
class CastFiles {
 public:
  CastFiles(const layout::Layout& from, const layout::Layout& to, Dtype dtype, Dtype cast_to,
            i64 gap, i64 tensors = 1)
      : dtype_(dtype), cast_to_(cast_to) {
    const auto holders = [](const layout::Layout& layout) {
      return std::make_shared<const index::HolderSet>(layout.holders());
    };
    const auto from_holders = holders(from);
    const auto to_holders = holders(to);
    Bytes source;
    for (i64 t = 0; t < tensors; ++t) {
      wholes_.push_back(random_elements(element_count(from.shape()).value(), dtype,
                                        static_cast<std::uint64_t>(t)));
      casts_.push_back(cast_of(wholes_.back(), dtype, cast_to));
      shards_.push_back(shards_of(to, cast_to, casts_.back().bytes));
      moves_.push_back({fmt::format("t{}", t),
                        dtype,
                        from.shape(),
                        {from_holders, append(source, shards_of(from, dtype, wholes_.back()), gap)},
                        {to_holders, append(wanted_, shards_.back(), gap)},
                        crc(wholes_.back()),
                        cast_to == dtype ? std::nullopt : std::optional(cast_to)});
    }
    write_bytes(folder_ / "source", source);
  }

  std::vector<CopiedTensor> run(const Resources& resources, IoMode reading = IoMode::kAuto) {
    store::File target = store::create_new(folder_ / "target");
    store::allocate(target, std::ssize(wanted_));
    std::vector<SourceFile> sources;
    sources.emplace_back(folder_ / "source", reading);
    std::vector<TargetFile> targets;
    targets.emplace_back(target);
    return copy(moves_, sources, targets, resources);
  }

  bool is_right(const std::vector<CopiedTensor>& copied) const {
    if (read_bytes(folder_ / "target") != wanted_) return false;
    for (size_t t = 0; t < copied.size(); ++t) {
      const CopiedTensor& tensor = copied[t];
      if (!tensor.is_whole || tensor.digest != crc(casts_[t].bytes)) return false;
      if (tensor.source_digest() != crc(wholes_[t])) return false;
      const auto expected = moves_[t].cast_to
                                ? std::optional(CastReport{casts_[t].counts, crc(wholes_[t])})
                                : std::nullopt;
      if (tensor.cast != expected) return false;
      for (size_t h = 0; h < shards_[t].size(); ++h) {
        if (tensor.xxh3[h] != kernels::xxh3(std::as_bytes(std::span(shards_[t][h])))) return false;
      }
    }
    return true;
  }

  /// Compares the file with the sources, after flipping the lowest bit of the byte at `wrong`.
  std::vector<Difference> compare_with_wrong(i64 wrong) const {
    Bytes bytes = wanted_;
    if (wrong >= 0) bytes[static_cast<size_t>(wrong)] ^= 1;
    write_bytes(folder_ / "other", bytes);
    std::vector<SourceFile> sources;
    sources.emplace_back(folder_ / "source");
    std::vector<SourceFile> others;
    others.emplace_back(folder_ / "other");
    return compare(moves_, sources, others, {});
  }

  const std::vector<TensorMove>& moves() const { return moves_; }

 private:
  static std::vector<Slot> append(Bytes& file, const std::vector<Bytes>& shards, i64 gap) {
    std::vector<Slot> slots;
    for (const Bytes& shard : shards) {
      file.resize(file.size() + static_cast<size_t>(gap));
      slots.push_back({0, std::ssize(file)});
      file.insert(file.end(), shard.begin(), shard.end());
    }
    return slots;
  }

  test::TempFolder folder_;
  Dtype dtype_, cast_to_;
  std::vector<Bytes> wholes_;
  std::vector<Cast> casts_;
  std::vector<std::vector<Bytes>> shards_;
  std::vector<TensorMove> moves_;
  Bytes wanted_;
};

auto any_source() {
  return rc::gen::element(Dtype::kF64, Dtype::kF32, Dtype::kF16, Dtype::kBF16, Dtype::kF8E4M3,
                          Dtype::kF8E5M2);
}

auto any_target() {
  return rc::gen::element(Dtype::kF32, Dtype::kF16, Dtype::kBF16);
}

}  // namespace

TEST_CASE("a copy with a cast between any two layouts writes the cast tensor's shards") {
  CHECK(rc::check("copy with cast = cast, then slice", [] {
    const Shape shape = *gen::shape();
    CastFiles files(*gen::layout(shape), *gen::layout(shape), *any_source(), *any_target(),
                    *gen::between(0, 9), *gen::between(1, 3));
    Resources options;
    options.threads = static_cast<int>(*gen::between(1, 4));
    RC_ASSERT(files.is_right(files.run(options)));
  }));
}

TEST_CASE("a comparison with a cast finds the one wrong byte and its place") {
  CHECK(rc::check("compare with cast", [] {
    const Shape shape = *gen::shape();
    const Dtype to = *any_target();
    const layout::Layout whole = layout::Layout::replicated(mesh::Mesh(), shape);
    CastFiles files(*gen::layout(shape), whole, *any_source(), to, 0, 2);
    const i64 bytes = *byte_size(to, shape);
    RC_PRE(bytes > 0);
    const i64 wrong = *gen::between(-1, 2 * bytes - 1);
    const auto found = files.compare_with_wrong(wrong);
    for (i64 t = 0; t < 2; ++t) {
      const bool is_here = wrong >= t * bytes && wrong < (t + 1) * bytes;
      const Difference& difference = found[static_cast<size_t>(t)];
      RC_ASSERT(difference.bytes == (is_here ? 1 : 0));
      RC_ASSERT(difference.first == (is_here ? wrong - t * bytes : -1));
    }
  }));
}

TEST_CASE("a tensor larger than every buffer is cast chunk by chunk, whatever the budget") {
  const Shape shape{600, 2048};
  const mesh::Mesh mesh = mesh::parse_mesh("tp=4");
  const layout::Layout rows(mesh, shape,
                            {{layout::split(600, {{"tp"}}), 1, {}}, {layout::whole(2048), 1, {}}});
  const layout::Layout columns(
      mesh, shape, {{layout::whole(600), 1, {}}, {layout::split(2048, {{"tp"}}), 1, {}}});
  const layout::Layout one = layout::Layout::replicated(mesh::Mesh(), shape);
  Resources options;
  options.max_memory = kMinMemory;
  for (const IoMode reading : {IoMode::kBuffered, IoMode::kDirect}) {
    for (const auto& [dtype, cast_to] :
         {std::pair(Dtype::kF32, Dtype::kBF16), std::pair(Dtype::kBF16, Dtype::kF32),
          std::pair(Dtype::kF16, Dtype::kBF16), std::pair(Dtype::kF8E4M3, Dtype::kBF16)}) {
      for (const auto& [from, to] : {std::pair(one, rows), std::pair(one, columns),
                                     std::pair(columns, rows), std::pair(rows, one)}) {
        CAPTURE(to_string(dtype));
        for (const i64 gap : {0, 8}) {
          CastFiles files(from, to, dtype, cast_to, gap);
          CHECK(files.is_right(files.run(options, reading)));
        }
      }
    }
  }
}

TEST_CASE("an element that several devices hold in other rows is counted once") {
  const Shape shape{4, 6};
  const layout::Layout one = layout::Layout::replicated(mesh::Mesh(), shape);
  // Device 0 has all columns, device 1 the last two again, device 2 the first four.
  const layout::Layout overlapping(
      mesh::parse_mesh("tp=3"), shape,
      {{layout::whole(4), 1, {}},
       {layout::owners(6, {{0, 1, 2, 3, 4, 5}, {4, 5}, {0, 1, 2, 3}}, {{"tp"}}), 1, {}}});
  CastFiles files(one, overlapping, Dtype::kF32, Dtype::kF16, 3);
  CHECK(files.is_right(files.run({})));
  CastFiles back(overlapping, one, Dtype::kF32, Dtype::kF16, 3);
  CHECK(back.is_right(back.run({})));
}

}  // namespace shardtool::exec

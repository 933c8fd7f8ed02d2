#include "tests/exec/moved_files.h"

#include <fstream>
#include <iterator>

#include "kernels/crc64/crc64.h"
#include "kernels/xxh3/xxh3.h"
#include "lib/store/local/file.h"

namespace shardtool::exec {

std::vector<Bytes> shards_of(const layout::Layout& layout, Dtype dtype, const Bytes& whole) {
  std::vector<Bytes> shards;
  for (int h = 0; h < layout.holders().size(); ++h) {
    shards.push_back(reference::place(layout.holders().region(h), whole, bits(dtype)));
  }
  return shards;
}

Packed pack(const std::vector<Bytes>& shards, int file, i64 gap) {
  Packed packed;
  for (const Bytes& shard : shards) {
    packed.bytes.resize(packed.bytes.size() + static_cast<size_t>(gap));
    packed.slots.push_back({file, static_cast<i64>(packed.bytes.size())});
    packed.bytes.insert(packed.bytes.end(), shard.begin(), shard.end());
  }
  return packed;
}

void write_bytes(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

Bytes read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Outcome run_copy(const Case& test, i64 gap, Resources options, IoMode reading) {
  const test::TempFolder folder;
  const i64 elements = element_count(test.from.shape()).value();
  const Bytes whole = reference::numbered(elements, bits(test.dtype));
  const Packed source = pack(shards_of(test.from, test.dtype, whole), 0, gap);
  Outcome outcome;
  outcome.wanted = pack(shards_of(test.to, test.dtype, whole), 0, gap);
  write_bytes(folder / "source", source.bytes);
  const auto shared = [](const layout::Layout& layout) {
    return std::make_shared<const index::HolderSet>(layout.holders());
  };
  const std::vector<TensorMove> moves{{test.name,
                                       test.dtype,
                                       test.from.shape(),
                                       {shared(test.from), source.slots},
                                       {shared(test.to), outcome.wanted.slots},
                                       {}}};
  store::File target = store::create_new(folder / "target");
  store::allocate(target, static_cast<i64>(outcome.wanted.bytes.size()));
  std::vector<SourceFile> sources;
  sources.emplace_back(folder / "source", reading);
  std::vector<TargetFile> targets;
  targets.emplace_back(target);
  outcome.copied = copy(moves, sources, targets, options).front();
  outcome.written = read_bytes(folder / "target");
  return outcome;
}

std::uint64_t digest_of(i64 elements, Dtype dtype) {
  const Bytes bytes = reference::numbered(elements, bits(dtype));
  return kernels::Crc64::of(std::as_bytes(std::span(bytes)));
}

bool is_right(const Case& test, const Outcome& outcome, i64 gap) {
  const i64 elements = element_count(test.from.shape()).value();
  const Bytes whole_bytes = reference::numbered(elements, bits(test.dtype));
  const auto shards = shards_of(test.to, test.dtype, whole_bytes);
  if (outcome.written != pack(shards, 0, gap).bytes) return false;
  for (size_t h = 0; h < shards.size(); ++h) {
    const auto bytes = std::as_bytes(std::span(shards[h]));
    if (outcome.copied.xxh3[h] != kernels::xxh3(bytes)) return false;
  }
  return outcome.copied.is_whole && outcome.copied.digest == digest_of(elements, test.dtype);
}

}  // namespace shardtool::exec

#include "lib/format/manifest/manifest_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "kernels/ops/round.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/names.h"
#include "lib/index/coverage.h"

namespace shardtool::format {
namespace {

constexpr i64 kNoRank = -1;

class Rules {
 public:
  Rules(const Manifest& manifest, const std::string& path)
      : manifest_(manifest), path_(path), rank_of_file_(manifest.files.size(), kNoRank) {}

  void check() {
    check_names();
    std::set<i64> seen;
    for (const RankRecord& rank : manifest_.ranks) {
      if (!seen.insert(rank.rank).second) {
        throw invalid(fmt::format("rank {} occurs twice in 'ranks'", rank.rank));
      }
      check_rank(rank);
    }
    for (const TensorRecord& tensor : manifest_.tensors) check_tensor(tensor);
  }

 private:
  Error invalid(const std::string& message) const {
    return Error(ErrorCode::kManifestInvalid, message).at({path_, 0, 0, ""});
  }

  void check_names() const {
    std::vector<const std::string*> files;
    for (const FileRecord& file : manifest_.files) files.push_back(&file.name);
    if (const std::string* twice = find_duplicate(std::move(files))) {
      throw invalid(fmt::format("file '{}' occurs twice in 'files'", quote_for_message(*twice)));
    }
    std::vector<const std::string*> tensors;
    for (const TensorRecord& tensor : manifest_.tensors) tensors.push_back(&tensor.name);
    if (const std::string* twice = find_duplicate(std::move(tensors))) {
      throw invalid("a tensor occurs twice in 'tensors'").tensor(quote_for_message(*twice));
    }
  }

  void check_rank(const RankRecord& rank) {
    const i64 devices = manifest_.mesh.size();
    if (rank.rank < 0 || rank.rank >= devices) {
      throw invalid("a rank is not on the mesh")
          .note("found", fmt::format("rank {}", rank.rank))
          .note("expected", fmt::format("0 to {} on {}", devices - 1, to_string(manifest_.mesh)));
    }
    check_coordinate(rank);
    for (const int file : rank.files) {
      if (static_cast<size_t>(file) >= manifest_.files.size()) {
        throw invalid(
            fmt::format("rank {} names file {} of {}", rank.rank, file, manifest_.files.size()));
      }
      i64& owner = rank_of_file_[static_cast<size_t>(file)];
      if (owner != kNoRank) {
        throw invalid(fmt::format("file '{}' is claimed by rank {} and rank {}", name_of(file),
                                  owner, rank.rank));
      }
      owner = rank.rank;
    }
  }

  void check_coordinate(const RankRecord& rank) const {
    std::vector<std::pair<std::string, i64>> expected;
    for (const mesh::MeshAxis& axis : manifest_.mesh.axes()) {
      expected.emplace_back(axis.name, manifest_.mesh.index_on(axis.name, rank.rank));
    }
    if (!std::is_permutation(expected.begin(), expected.end(), rank.coordinate.begin(),
                             rank.coordinate.end())) {
      throw invalid(fmt::format("the coordinate of rank {} is not its place on {}", rank.rank,
                                to_string(manifest_.mesh)));
    }
  }

  void check_tensor(const TensorRecord& tensor) const {
    std::vector<i64> ranks;
    for (size_t s = 0; s < tensor.shards.size(); ++s) {
      check_shard(tensor, s);
      ranks.push_back(tensor.shards[s].rank);
    }
    if (manifest_.has_chunks && !tensor.shifts.empty()) {
      throw invalid("a chunk has values of its own").tensor(quote_for_message(tensor.name));
    }
    std::sort(ranks.begin(), ranks.end());
    const auto twice = std::adjacent_find(ranks.begin(), ranks.end());
    if (twice == ranks.end() || manifest_.has_chunks) return;
    throw invalid(fmt::format("rank {} has two shards of one tensor", *twice))
        .tensor(quote_for_message(tensor.name));
  }

  void check_shard(const TensorRecord& tensor, size_t s) const {
    const ShardRecord& shard = tensor.shards[s];
    const auto fail = [&](const std::string& found, const std::string& expected) {
      throw invalid(fmt::format("the shard of rank {} is not valid", shard.rank))
          .tensor(quote_for_message(tensor.name))
          .note("found", found)
          .note("expected", expected);
    };
    const auto number = static_cast<size_t>(shard.file);
    if (number >= manifest_.files.size()) {
      fail(fmt::format("file {}", shard.file),
           fmt::format("one of {} files", manifest_.files.size()));
    }
    if (rank_of_file_[number] != shard.rank) {
      fail(fmt::format("file '{}'", name_of(shard.file)),
           fmt::format("a file of rank {}", shard.rank));
    }
    const Shape shape = tensor.holders->local_shape(static_cast<int>(s));
    if (byte_size(tensor.dtype, shape) != shard.bytes) {
      fail(fmt::format("{} bytes", shard.bytes),
           fmt::format("the bytes of {} {}", to_string(tensor.dtype), to_string(shape)));
    }
    const auto end = checked_add(shard.offset, shard.bytes);
    if (!end || *end > manifest_.files[number].bytes) {
      fail(fmt::format("{} bytes at {}", shard.bytes, shard.offset),
           fmt::format("a place inside the {} bytes of '{}'", manifest_.files[number].bytes,
                       name_of(shard.file)));
    }
  }

  std::string name_of(int file) const {
    return quote_for_message(manifest_.files[static_cast<size_t>(file)].name);
  }

  const Manifest& manifest_;
  const std::string& path_;
  std::vector<i64> rank_of_file_;
};

}  // namespace

std::string constant_bytes(const ConstantRecord& constant) {
  const auto exact = static_cast<float>(constant.value);
  const bool is_bf16 = constant.dtype == Dtype::kBF16;
  const float value = is_bf16 ? kernels::rounded_to_bf16(exact) : exact;
  const size_t skipped = is_bf16 ? sizeof value / 2 : 0;  // BF16 is the upper half of F32
  std::string bytes;
  for (i64 n = element_count(constant.shape).value_or(0); n > 0; --n) {
    bytes.append(reinterpret_cast<const char*>(&value) + skipped, sizeof value - skipped);
  }
  return bytes;
}

void check_manifest(const Manifest& manifest, const std::string& path) {
  Rules(manifest, path).check();
}

std::vector<const TensorRecord*> without_digest(const Manifest& manifest) {
  std::vector<const TensorRecord*> found;
  std::map<const index::HolderSet*, bool> is_covered;  // tensors of one layout share their set
  for (const TensorRecord& tensor : manifest.tensors) {
    if (tensor.digest || tensor.is_unread) continue;
    const auto [known, is_new] = is_covered.try_emplace(tensor.holders.get());
    if (is_new) known->second = index::covers(*tensor.holders);
    if (known->second) found.push_back(&tensor);
  }
  return found;
}

}  // namespace shardtool::format

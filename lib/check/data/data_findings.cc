#include "lib/check/data/data_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/check/coverage.h"
#include "lib/check/data/logical_values.h"
#include "lib/exec/shifted.h"
#include "lib/index/coverage.h"

namespace shardtool::check {
namespace {

using index::HolderSet;

/// True for masks, and for vectors of integers, such as the groups of inputs: runs of zeros are
/// ordinary there.
bool may_have_zeros(const TensorSpec& spec) {
  const DtypeKind kind = dtype_info(spec.dtype).kind;
  const bool is_integer = kind == DtypeKind::kSigned || kind == DtypeKind::kUnsigned;
  return kind == DtypeKind::kBool || (is_integer && spec.shape.size() < 2);
}

/// True for scales of quantised weights and of their inputs, which are no biases: zeros among them
/// were never loaded.
bool is_scale(std::string_view name) {
  constexpr auto kEnds = std::to_array<std::string_view>({".weight_scale", ".weight_scale_inv",
                                                          ".weight_scale_2", ".weight_global_scale",
                                                          ".input_scale", ".input_global_scale"});
  return std::ranges::any_of(kEnds, [name](std::string_view end) { return name.ends_with(end); });
}

/// Converts the results of one tensor into findings.
class Judge {
 public:
  Judge(const DataTensor& tensor, std::span<const SeenData> seen, std::span<const DataFile> files,
        const exec::KeptRanges& kept, Findings& findings)
      : tensor_(tensor), seen_(seen), files_(files), kept_(kept), findings_(findings) {}

  void run() {
    for (int h = 0; h < size(); ++h) check_values(h);
    for (int h = 0; h < size(); ++h) check_hash(h);
    if (all_hashes_fit_) check_whole();
    check_zeros();
  }

 private:
  void check_whole() {
    if (has_own_values()) return check_shifted();
    if (check_replicas()) check_digest();
  }
  int size() const { return tensor_.side.holders->size(); }
  const SeenData& seen(int holder) const { return seen_[static_cast<size_t>(holder)]; }
  i64 rank(int holder) const {
    return tensor_.ranks.empty() ? -1 : tensor_.ranks[static_cast<size_t>(holder)];
  }
  i64 elements(int holder) const { return image_size(tensor_.side.holders->region(holder)); }

  Finding finding(CheckRule rule, int holder, std::string message) const {
    const exec::Slot& slot = tensor_.side.slots[static_cast<size_t>(holder)];
    return {.rule = rule,
            .message = std::move(message),
            .file = files_[static_cast<size_t>(slot.file)].shown,
            .tensor = tensor_.spec.name,
            .rank = rank(holder)};
  }

  void check_values(int holder) {
    const kernels::FloatCensus& census = seen(holder).census;
    const auto of_all = [&](i64 count) {
      return fmt::format("{} of {} elements", count, elements(holder));
    };
    if (census.nan > 0) {
      Finding nan = finding(CheckRule::kNan, holder, of_all(census.nan) + " are NaN");
      nan.fix = "convert the checkpoint again from a source without NaN";
      findings_.add(std::move(nan));
    }
    if (census.infinite > 0) {
      findings_.add(
          finding(CheckRule::kInfinite, holder, of_all(census.infinite) + " are infinite"));
    }
  }

  /// True if the manifest vouches for the holder's bytes.
  bool is_recorded(int holder) const {
    const auto h = static_cast<size_t>(holder);
    return is_whole_ || (!tensor_.xxh3.empty() && tensor_.xxh3[h] == seen(holder).xxh3);
  }

  void check_zeros() {
    const auto is_zero = [this](int h) { return elements(h) > 0 && seen(h).census.all_zero; };
    int zeros = 0;
    int with_elements = 0;
    for (int h = 0; h < size(); ++h) {
      zeros += is_zero(h) ? 1 : 0;
      with_elements += elements(h) > 0 ? 1 : 0;
    }
    if (zeros == 0) return;
    const bool all = zeros == with_elements;
    const bool may_be_bias = tensor_.spec.shape.size() < 2 && !is_scale(tensor_.spec.name);
    if (may_be_bias && all) return;
    if (!all && may_have_zeros(tensor_.spec)) return;
    for (int h = 0; h < size(); ++h) {
      if (!is_zero(h) || (!all && is_recorded(h))) continue;
      findings_.add(all ? finding(CheckRule::kZeroTensor, h, "all elements are zero")
                        : finding(CheckRule::kZeroShard, h,
                                  "all elements of this shard are zero, those of others are not"));
      if (all) return;
    }
  }

  void check_hash(int holder) {
    if (tensor_.xxh3.empty()) return;
    const kernels::Hash128& expected = tensor_.xxh3[static_cast<size_t>(holder)];
    if (expected == seen(holder).xxh3) return;
    all_hashes_fit_ = false;
    Finding wrong =
        finding(CheckRule::kShardHash, holder, "the bytes are not those that the manifest records");
    wrong.found = "XXH3-128 " + seen(holder).xxh3.hex();
    wrong.expected = "XXH3-128 " + expected.hex();
    wrong.fix = "split the checkpoint again, or copy the file again";
    findings_.add(std::move(wrong));
  }

  /// True if a holder and the first of its replicas have equal hashes, or equal digests if they
  /// pad: devices may fill padding with copies of different elements.
  bool agrees(int holder) const {
    const int first = tensor_.side.holders->replicas(holder).front();
    if (seen(first).xxh3 == seen(holder).xxh3) return true;
    return has_padding(tensor_, holder) && seen(first).digest == seen(holder).digest;
  }

  /// True if the holders store values of their own, by shifts, instead of the tensor's.
  bool has_own_values() const {
    if (tensor_.shifts.empty() || !tensor_.may_be_plain) return !tensor_.shifts.empty();
    for (int h = 0; h < size(); ++h) {
      if (!agrees(h)) return true;
    }
    return false;
  }

  /// Checks that replicas agree. Returns true if all do.
  bool check_replicas() {
    const HolderSet& holders = *tensor_.side.holders;
    bool equal = true;
    for (int h = 0; h < size(); ++h) {
      if (agrees(h)) continue;
      const int first = holders.replicas(h).front();
      equal = false;
      Finding differs =
          finding(CheckRule::kReplicasDiffer, h,
                  fmt::format("rank {} has other bytes than rank {}", rank(h), rank(first)));
      if (tensor_.ranks.empty())
        differs.message = "it has other bytes than " + finding(differs.rule, first, {}).file;
      differs.found = "XXH3-128 " + seen(h).xxh3.hex();
      differs.expected = "XXH3-128 " + seen(first).xxh3.hex();
      differs.fix = "one of the copies is damaged: copy or split the checkpoint again";
      findings_.add(std::move(differs));
    }
    return equal;
  }

  /// Compares values that are stored differently on each device by their logical values.
  void check_shifted() {
    try {
      const std::vector<i64> values = logical_values(tensor_, tensor_.shifts, files_, kept_);
      hold_digest(exec::digest_of_values(values, tensor_.spec.dtype));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCoverage) return;  // reported as a finding about the layout
      if (error.code() != ErrorCode::kDataMismatch) throw;
      findings_.add(finding(CheckRule::kReplicasDiffer, 0, error.message()));
    }
  }

  void check_digest() {
    const HolderSet& holders = *tensor_.side.holders;
    if (!tensor_.digest || !index::covers(holders) || has_partial_overlap(holders)) {
      return;
    }
    std::uint64_t digest = 0;
    for (const int h : holders.firsts()) digest ^= seen(h).digest;
    hold_digest(digest);
  }

  void hold_digest(std::uint64_t digest) {
    is_whole_ = tensor_.digest == digest;
    if (!tensor_.digest || is_whole_) return;
    Finding wrong = finding(CheckRule::kDigest, 0, "the shards together are not the tensor");
    wrong.rank = -1;
    wrong.found = fmt::format("CRC-64 {:016x}", digest);
    wrong.expected = fmt::format("CRC-64 {:016x}", *tensor_.digest);
    wrong.fix = "split the checkpoint again";
    findings_.add(std::move(wrong));
  }

  const DataTensor& tensor_;
  std::span<const SeenData> seen_;  ///< by holder
  std::span<const DataFile> files_;
  const exec::KeptRanges& kept_;
  Findings& findings_;
  bool all_hashes_fit_ = true;
  bool is_whole_ = false;  ///< the digest is that of the manifest
};

}  // namespace

void judge_data(const DataTensor& tensor, std::span<const SeenData> seen,
                std::span<const DataFile> files, const exec::KeptRanges& kept, Findings& findings) {
  Judge(tensor, seen, files, kept, findings).run();
}

}  // namespace shardtool::check

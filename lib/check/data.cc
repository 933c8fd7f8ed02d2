#include "lib/check/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "kernels/crc32/crc32.h"
#include "kernels/float_census/float_census.h"
#include "kernels/xxh3/xxh3.h"
#include "lib/base/error.h"
#include "lib/check/coverage.h"
#include "lib/check/record_sums.h"
#include "lib/exec/compare.h"
#include "lib/exec/files/range_hash.h"
#include "lib/index/coverage.h"

namespace shardtool::check {
namespace {

using index::HolderSet;

/// Bytes of one holder of one tensor.
struct Stored {
  size_t tensor = 0;
  int holder = 0;
};

/// Result of reading them.
struct Seen {
  kernels::FloatCensus census;
  std::uint64_t digest = 0;  ///< part of the tensor's digest
  kernels::Hash128 xxh3;
};

/// Holder sets of one holder of a set, shared by all tensors that share the set.
class SingleHolders {
 public:
  const std::shared_ptr<const HolderSet>& of(const std::shared_ptr<const HolderSet>& set,
                                             int holder) {
    auto& single = singles_[{set.get(), holder}];
    if (!single) {
      auto alone = std::make_shared<HolderSet>(set->shape());
      alone->add(set->region(holder));
      single = std::move(alone);
    }
    return single;
  }

 private:
  std::map<std::pair<const HolderSet*, int>, std::shared_ptr<const HolderSet>> singles_;
};

/// True for masks, and for vectors of integers, such as the groups of inputs: runs of zeros are
/// ordinary there.
bool may_have_zeros(const TensorSpec& spec) {
  const DtypeKind kind = dtype_info(spec.dtype).kind;
  const bool is_integer = kind == DtypeKind::kSigned || kind == DtypeKind::kUnsigned;
  return kind == DtypeKind::kBool || (is_integer && spec.shape.size() < 2);
}

/// True for vectors of which logical_values may be asked for.
bool is_asked_for(const DataTensor& tensor) {
  const Dtype dtype = tensor.spec.dtype;
  const bool may_be_numbers = dtype == Dtype::kI32 || dtype == Dtype::kI64;
  return tensor.spec.shape.size() == 1 && (may_be_numbers || !tensor.shifts.empty());
}

/// True for scales of quantised weights and of their inputs, which are no biases: zeros among them
/// were never loaded.
bool is_scale(std::string_view name) {
  constexpr auto kEnds = std::to_array<std::string_view>({".weight_scale", ".weight_scale_inv",
                                                          ".weight_scale_2", ".weight_global_scale",
                                                          ".input_scale", ".input_global_scale"});
  return std::ranges::any_of(kEnds, [name](std::string_view end) { return name.ends_with(end); });
}

/// Every holder of every tensor, ordered by (file, offset).
std::vector<Stored> in_file_order(std::span<const DataTensor> tensors) {
  std::vector<Stored> stored;
  for (size_t t = 0; t < tensors.size(); ++t) {
    for (int h = 0; h < tensors[t].side.holders->size(); ++h) stored.push_back({t, h});
  }
  const auto slot = [&](const Stored& s) {
    const exec::Slot& at = tensors[s.tensor].side.slots[static_cast<size_t>(s.holder)];
    return std::pair(at.file, at.offset);
  };
  std::sort(stored.begin(), stored.end(),
            [&](const Stored& a, const Stored& b) { return slot(a) < slot(b); });
  return stored;
}

/// True if the holder has padding or copies in addition to elements of the tensor.
bool has_padding(const DataTensor& tensor, int holder) {
  const index::Region region = tensor.side.holders->region(holder);
  return index::image_size(region) != element_count(index::local_shape(region)).value_or(0);
}

bool pads(const DataTensor& tensor) {
  for (int h = 0; h < tensor.side.holders->size(); ++h) {
    if (has_padding(tensor, h)) return true;
  }
  return false;
}

/// Reads holders as they are stored: each is moved from itself to itself, so that a chunk is a
/// range of its bytes and its digest is relative to the whole tensor.
class Reader {
 public:
  Reader(std::span<const DataTensor> tensors, std::span<const DataFile> files, RecordSums& sums,
         exec::KeptRanges& kept)
      : tensors_(tensors),
        files_(files),
        sums_(sums),
        kept_(kept),
        stored_(in_file_order(tensors)),
        seen_(stored_.size()) {
    SingleHolders singles;
    for (const Stored& s : stored_) {
      const DataTensor& tensor = tensors[s.tensor];
      const auto& alone = singles.of(tensor.side.holders, s.holder);
      exec::Slot slot = tensor.side.slots[static_cast<size_t>(s.holder)];
      may_sum_.push_back(
          sums_.touch(tensor.spec.name, slot.file, slot.offset, holder_bytes(tensor, s.holder)));
      slot.file = opened(slot.file);
      const exec::MoveSide side{alone, {slot}};
      moves_.push_back({tensor.spec.name, tensor.spec.dtype, tensor.spec.shape, side, side, {}});
    }
  }

  void run(const exec::Resources& resources) {
    const std::vector<exec::SourceFile> sources = exec::open_sources(opened_files_);
    running_.resize(moves_.size());
    const bool is_remote = std::ranges::any_of(sources, &exec::SourceFile::is_remote);
    kept_.allow((is_remote ? resources.store_memory : resources.max_memory) / 4);
    const bool any_digest = std::any_of(tensors_.begin(), tensors_.end(), [](const auto& t) {
      return t.digest.has_value() || pads(t);
    });
    exec::stream(moves_, sources, resources,
                 {[this](size_t i, const exec::ChunkPlan& plan) { begin(i, plan); },
                  [this](std::span<const exec::FilledChunk> chunks, exec::Turnstile& turns) {
                    for (const exec::FilledChunk& filled : chunks) take(filled, turns);
                  },
                  [&](size_t i) { end(i, sources); },
                  any_digest ? exec::Digests::kOfEverything : exec::Digests::kNone});
  }

  const std::vector<Stored>& stored() const { return stored_; }
  const std::vector<Seen>& seen() const { return seen_; }

 private:
  /// Hashes of a holder whose bytes come in order, and the bytes if they are kept.
  struct Running {
    std::unique_ptr<kernels::Xxh3> xxh3;
    std::optional<kernels::Crc32> crc32;
    std::unique_ptr<exec::KeptRanges::Bytes> kept;

    bool is_wanted() const { return xxh3 || crc32 || kept; }
    void update(std::span<const std::byte> bytes) {
      if (xxh3) xxh3->update(bytes);
      if (crc32) crc32->update(bytes);
      if (kept) kept->insert(kept->end(), bytes.begin(), bytes.end());
    }
  };

  /// Number of a file among the opened ones: others may be missing or damaged.
  int opened(int file) {
    const auto [found, is_new] = opened_.try_emplace(file, static_cast<int>(opened_files_.size()));
    if (is_new) opened_files_.push_back(files_[static_cast<size_t>(file)].file);
    return found->second;
  }

  /// True if hashes are needed, to compare replicas or to compare with the manifest. A tensor with
  /// one holder and no recorded hash needs none.
  bool wants_hash(const DataTensor& tensor) const {
    return !tensor.xxh3.empty() || tensor.side.holders->size() > 1;
  }

  void begin(size_t i, const exec::ChunkPlan& plan) {
    const Stored& s = stored_[i];
    const DataTensor& tensor = tensors_[s.tensor];
    // Bytes that come out of order, or with padding between, are hashed separately at the end.
    if (!plan.is_sequential(0) || has_padding(tensor, s.holder)) return;
    if (wants_hash(tensor)) running_[i].xxh3 = std::make_unique<kernels::Xxh3>();
    if (may_sum_[i]) running_[i].crc32.emplace();
    if (!is_asked_for(tensor)) return;
    const std::lock_guard lock(mutex_);
    if (!kept_.reserve(holder_bytes(tensor, s.holder))) return;
    running_[i].kept = std::make_unique<exec::KeptRanges::Bytes>();
  }

  void take(const exec::FilledChunk& filled, exec::Turnstile& turns) {
    const size_t i = filled.number;
    kernels::FloatCensus census;
    for (size_t o = 0; o < filled.outputs.size(); ++o) {
      census += kernels::float_census(moves_[i].dtype, filled.bytes_of(o));
    }
    if (Running& running = running_[i]; running.is_wanted()) {
      turns.in_order(filled.chunk->sequence, [&] {
        for (size_t o = 0; o < filled.outputs.size(); ++o) running.update(filled.bytes_of(o));
      });
    }
    const std::lock_guard lock(mutex_);
    seen_[i].census += census;
    seen_[i].digest ^= filled.digest_read;
  }

  void end(size_t i, std::span<const exec::SourceFile> sources) {
    const Stored& s = stored_[i];
    const DataTensor& tensor = tensors_[s.tensor];
    Running running = std::move(running_[i]);
    const exec::Slot& stored = tensor.side.slots[static_cast<size_t>(s.holder)];
    if (running.crc32) sums_.take(stored.file, stored.offset, running.crc32->value());
    if (running.kept) {
      const std::lock_guard lock(mutex_);
      kept_.keep(stored, *std::move(running.kept));
    }
    if (!wants_hash(tensor)) return;
    if (running.xxh3) {
      seen_[i].xxh3 = running.xxh3->value();
      return;
    }
    const exec::Slot& slot = moves_[i].from.slots.front();
    seen_[i].xxh3 = exec::hash_range(sources[static_cast<size_t>(slot.file)], slot.offset,
                                     holder_bytes(tensor, s.holder));
  }

  std::span<const DataTensor> tensors_;
  std::span<const DataFile> files_;
  RecordSums& sums_;
  exec::KeptRanges& kept_;
  std::vector<bool> may_sum_;  ///< by number in `stored_`: it is all of a record
  std::vector<Stored> stored_;
  std::vector<Seen> seen_;
  std::vector<exec::TensorMove> moves_;
  std::map<int, int> opened_;
  std::vector<exec::SurveyedFile> opened_files_;
  std::vector<Running> running_;
  std::mutex mutex_;
};

/// Converts the results of one tensor into findings.
class Judge {
 public:
  Judge(const DataTensor& tensor, std::vector<const Seen*> seen, std::span<const DataFile> files,
        const exec::KeptRanges& kept, Findings& findings)
      : tensor_(tensor), seen_(std::move(seen)), files_(files), kept_(kept), findings_(findings) {}

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
  const Seen& seen(int holder) const { return *seen_[static_cast<size_t>(holder)]; }
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
      differs.found = "XXH3-128 " + seen(h).xxh3.hex();
      differs.expected = "XXH3-128 " + seen(first).xxh3.hex();
      differs.fix = "one of the copies is damaged: split the checkpoint again";
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
  std::vector<const Seen*> seen_;  ///< by holder
  std::span<const DataFile> files_;
  const exec::KeptRanges& kept_;
  Findings& findings_;
  bool all_hashes_fit_ = true;
  bool is_whole_ = false;  ///< the digest is that of the manifest
};

/// Compares elements that holders share without being replicas one by one.
void compare_overlaps(std::span<const DataTensor> tensors, std::span<const DataFile> files,
                      const exec::Resources& resources, Findings& findings) {
  std::vector<exec::TensorMove> moves;
  std::vector<const DataTensor*> compared;
  std::map<int, int> opened;
  std::vector<exec::SourceFile> sources;
  for (const DataTensor& tensor : tensors) {
    if (!tensor.shifts.empty() || !has_partial_overlap(*tensor.side.holders)) continue;
    exec::MoveSide side = tensor.side;
    for (exec::Slot& slot : side.slots) {
      const auto [found, is_new] = opened.try_emplace(slot.file, static_cast<int>(sources.size()));
      if (is_new) sources.emplace_back(files[static_cast<size_t>(slot.file)].file);
      slot.file = found->second;
    }
    moves.push_back({tensor.spec.name, tensor.spec.dtype, tensor.spec.shape, side, side, {}});
    compared.push_back(&tensor);
  }
  exec::Resources quiet = resources;
  quiet.on_progress = nullptr;
  const auto differences = exec::compare(moves, sources, sources, quiet);
  for (size_t i = 0; i < differences.size(); ++i) {
    if (differences[i].bytes == 0) continue;
    const auto holder = static_cast<size_t>(differences[i].holder);
    const DataTensor& tensor = *compared[i];
    findings.add({.rule = CheckRule::kReplicasDiffer,
                  .message = "ranks hold other bytes for elements that they share",
                  .file = files[static_cast<size_t>(tensor.side.slots[holder].file)].shown,
                  .tensor = tensor.spec.name,
                  .rank = tensor.ranks.empty() ? -1 : tensor.ranks[holder],
                  .found = fmt::format("{} bytes differ, the first is byte {} of the whole tensor",
                                       differences[i].bytes, differences[i].first)});
  }
}

}  // namespace

i64 holder_bytes(const DataTensor& tensor, int holder) {
  return exec::holder_bytes(*tensor.side.holders, holder, tensor.spec.dtype);
}

i64 stored_bytes(const DataTensor& tensor) {
  i64 bytes = 0;
  for (int h = 0; h < tensor.side.holders->size(); ++h) bytes += holder_bytes(tensor, h);
  return bytes;
}

void StoredBytes::add(const DataTensor& tensor) {
  for (int h = 0; h < tensor.side.holders->size(); ++h) {
    const exec::Slot& slot = tensor.side.slots[static_cast<size_t>(h)];
    i64& bytes = slots_[{slot.file, slot.offset}];
    const i64 longest = std::max(bytes, holder_bytes(tensor, h));
    total_ += longest - std::exchange(bytes, longest);
  }
}

i64 check_data(std::span<const DataTensor> tensors, std::span<const DataFile> files,
               const exec::Resources& resources, Findings& findings, exec::KeptRanges& kept) {
  RecordSums sums(files, findings);
  Reader reader(tensors, files, sums, kept);
  reader.run(resources);
  sums.judge();
  std::vector<std::vector<const Seen*>> seen(tensors.size());
  for (size_t t = 0; t < tensors.size(); ++t) {
    seen[t].resize(static_cast<size_t>(tensors[t].side.holders->size()));
  }
  for (size_t i = 0; i < reader.stored().size(); ++i) {
    const Stored& s = reader.stored()[i];
    seen[s.tensor][static_cast<size_t>(s.holder)] = &reader.seen()[i];
  }
  compare_overlaps(tensors, files, resources, findings);
  StoredBytes bytes;
  for (size_t t = 0; t < tensors.size(); ++t) {
    Judge(tensors[t], std::move(seen[t]), files, kept, findings).run();
    bytes.add(tensors[t]);
  }
  return bytes.total();
}

}  // namespace shardtool::check

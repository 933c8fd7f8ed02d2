#include "lib/check/data/data_reader.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "kernels/crc32/crc32.h"
#include "lib/exec/files/range_hash.h"
#include "lib/exec/stream.h"

namespace shardtool::check {
namespace {

using index::HolderSet;

/// Bytes of one holder of one tensor.
struct Stored {
  size_t tensor = 0;
  int holder = 0;
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

/// True for vectors of which logical_values may be asked for.
bool is_asked_for(const DataTensor& tensor) {
  const Dtype dtype = tensor.spec.dtype;
  const bool may_be_numbers = dtype == Dtype::kI32 || dtype == Dtype::kI64;
  return tensor.spec.shape.size() == 1 && (may_be_numbers || !tensor.shifts.empty());
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
  std::ranges::sort(stored, {}, slot);
  return stored;
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

  /// Returns what was seen, by tensor and holder.
  std::vector<std::vector<SeenData>> seen() const {
    std::vector<std::vector<SeenData>> by_tensor(tensors_.size());
    for (size_t t = 0; t < tensors_.size(); ++t)
      by_tensor[t].resize(static_cast<size_t>(tensors_[t].side.holders->size()));
    for (size_t i = 0; i < stored_.size(); ++i)
      by_tensor[stored_[i].tensor][static_cast<size_t>(stored_[i].holder)] = seen_[i];
    return by_tensor;
  }

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
  std::vector<SeenData> seen_;
  std::vector<exec::TensorMove> moves_;
  std::map<int, int> opened_;
  std::vector<exec::SurveyedFile> opened_files_;
  std::vector<Running> running_;
  std::mutex mutex_;
};

}  // namespace

std::vector<std::vector<SeenData>> read_holders(std::span<const DataTensor> tensors,
                                                std::span<const DataFile> files,
                                                const exec::Resources& resources, RecordSums& sums,
                                                exec::KeptRanges& kept) {
  Reader reader(tensors, files, sums, kept);
  reader.run(resources);
  return reader.seen();
}

}  // namespace shardtool::check

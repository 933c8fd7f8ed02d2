#include "lib/engine/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <ranges>
#include <set>
#include <thread>
#include <tuple>

#include "kernels/device/upload_ring.h"
#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/engine/diagnosis/byte_equality.h"
#include "lib/engine/diagnosis/odd_weights.h"
#include "lib/engine/diagnosis/verdict_merge.h"
#include "lib/engine/names.h"
#include "lib/engine/rounding.h"
#include "lib/engine/run/crew.h"
#include "lib/engine/tier.h"
#include "lib/engine/validation_inputs.h"
#include "lib/engine/weights/block_grid.h"
#include "lib/engine/weights/cut_side.h"
#include "lib/engine/weights/reading_order.h"

namespace shardtool::engine {
namespace {

constexpr int kReaders = 2;
constexpr i64 kMostChunkBytes = 4 << 20;
constexpr i64 kChunksInBudget = 8;
/// Chunks on their way to an accelerator: one being filled, one copied, one multiplied.
constexpr i64 kChunksUnderWay = 3;
/// Keeps a part in the second-level cache while several number systems use it.
constexpr i64 kPartsPerThread = 2;

i64 chunk_bytes(const ValidationOptions& options) {
  const i64 rings = std::max<i64>(1, std::ssize(options.accelerators));
  return std::min(kMostChunkBytes, options.resources.max_memory / (kChunksInBudget * rings));
}

/// Read-ahead budget in bytes. An accelerator's chunks, and the copies of other arrays, which get
/// as much as one chunk, are of the budget.
i64 read_ahead(const ValidationOptions& options) {
  return options.resources.max_memory -
         std::ssize(options.accelerators) * (kChunksUnderWay + 1) * chunk_bytes(options);
}

Memories memories_of(const ValidationOptions& options) {
  Memories memories;
  for (kernels::Accelerator* const accelerator : options.accelerators) {
    memories.push_back(std::make_shared<kernels::DeviceMemory>(
        *accelerator, static_cast<size_t>(chunk_bytes(options))));
  }
  return memories;
}

class Validation {
 public:
  Validation(const Side& whole, const Side& shards, comm::Communicator* comm,
             const ValidationOptions& options)
      : whole_(whole),
        shards_(shards),
        options_(options),
        fabric_(shards.mesh, comm),
        layers_(pair_layers(whole, shards)),
        crew_(options.resources.threads > 0
                  ? options.resources.threads
                  : static_cast<int>(std::thread::hardware_concurrency())),
        tokens_(any_tokens(whole, options)),
        stretch_(stretch_of(options.share, layers_, whole, shards)),
        stored_bytes_(weight_bytes(stretch_, layers_, whole, shards)),
        order_({layers_, stretch_, whole, shards, fabric_.own(), fabric_.is_first_process(),
                chunk_bytes(options), tokens_}),
        memories_(memories_of(options)),
        field_(TierKind::kField, Standard::kWhole, whole, shards, comm,
               field_inputs(tokens_, options), 0, memories_) {
    if (options.with_f64) {
      real_ = std::make_unique<Tier<double>>(TierKind::kF64, Standard::kWhole, whole, shards, comm,
                                             real_inputs(tokens_, options), options.tolerance,
                                             memories_);
    }
    if (options.with_ordered) add_ordered(comm);
    if (options.with_f64 && options.native) {
      native_ = std::make_unique<Tier<float>>(TierKind::kNative, Standard::kWhole, whole, shards,
                                              comm, native_inputs(tokens_, options),
                                              std::numeric_limits<double>::infinity(), memories_);
    }
    for (kernels::Accelerator* const accelerator : options.accelerators) {
      rings_.emplace_back(*accelerator, kChunksUnderWay);
    }
    if (options.compares_bytes) equality_.emplace(whole, shards);
    if (options.recorded != nullptr) recorded_.emplace(whole, shards, *options.recorded);
    stream_ = std::make_unique<ChunkStream>([this] { return order_.next(); }, read_ahead(options),
                                            kReaders);
  }

  Verdict run();

 private:
  template <class Action>
  void each_tier(const Action& action) {
    action(field_);
    if (real_) action(*real_);
    for (const auto& tier : ordered_) action(*tier);
    if (native_) action(*native_);
  }
  void add_ordered(comm::Communicator* comm);
  void run_step(size_t layer, size_t step);
  void run_products(bool of_shards, size_t layer, size_t step);
  void look_at_small_weights(bool of_shards, const ops::BoundOp& op, std::span<const i64> ranks);
  /// NaN and infinite numbers in matrices that are read for the first time, by rank: the tensor and
  /// their numbers.
  using Censuses = std::multimap<i64, std::pair<size_t, kernels::FloatCensus>>;
  void multiply(const SharedProduct& shared, bool of_shards, Censuses& censuses);
  kernels::FloatCensus multiply_rows(const MatrixProduct& product, bool of_shards,
                                     index::Interval rows, std::span<const std::byte> bytes,
                                     bool is_new, bool is_counted);
  /// Returns the ring of the accelerator that computes the product; null: the CPU does.
  kernels::UploadRing* ring_of(const MatrixProduct& product, bool of_shards);
  void multiply_there(const MatrixProduct& product, bool of_shards, index::Interval rows,
                      std::span<const std::byte> bytes, kernels::UploadRing& ring);
  Counts predicted_counts() const;
  std::string first_realigned() const;
  void predict(Verdict& verdict);

  const Side& whole_;
  const Side& shards_;
  const ValidationOptions& options_;
  Fabric fabric_;
  std::vector<LayerPair> layers_;
  size_t layer_ = 0;  ///< current layer
  Crew crew_;
  std::vector<i64> tokens_;
  Stretch stretch_;       ///< the layers to run
  i64 stored_bytes_ = 0;  ///< expected bytes to read, the total of the progress
  ReadingOrder order_;
  Memories memories_;
  Tier<Field> field_;
  std::unique_ptr<Tier<double>> real_;
  std::optional<CutSide> cut_;
  std::vector<std::unique_ptr<Tier<float>>> ordered_;
  std::unique_ptr<Tier<float>> native_;
  std::vector<OddWeight> odd_;
  std::deque<kernels::UploadRing> rings_;  ///< by accelerator
  std::optional<ByteEquality> equality_;
  std::optional<RecordedByteCheck> recorded_;
  /// Matrices whose numbers have been checked for NaN and infinity.
  std::set<std::tuple<bool, size_t, i64, i64, i64>> counted_;
  std::unique_ptr<ChunkStream> stream_;  ///< last member: its threads use those above
};

/// Adds the runs in f32 and bf16 against the whole model's cut.
void Validation::add_ordered(comm::Communicator* comm) {
  cut_.emplace(whole_, shards_, layers_);
  const Inputs inputs = real_inputs(tokens_, options_);
  const std::pair<TierKind, Inputs> runs[] = {
      {TierKind::kOrderedF32, inputs},
      {TierKind::kOrderedBf16, with_activations(inputs, Dtype::kBF16)}};
  for (const auto& [kind, with] : runs) {
    ordered_.push_back(std::make_unique<Tier<float>>(kind, Standard::kBits, cut_->side(), shards_,
                                                     comm, with, 0, Memories()));
  }
}

/// Multiplies by a matrix on all devices that share it, chunk by chunk.
void Validation::multiply(const SharedProduct& shared, bool of_shards, Censuses& censuses) {
  std::vector<kernels::FloatCensus*> counts;  // null: counted before
  for (const MatrixProduct& product : shared) {
    // A table that one op looks up and another multiplies by is counted once.
    const bool is_new =
        !product.is_looked_up &&
        counted_.insert({of_shards, product.tensor, product.rank, product.outer, product.above})
            .second;
    counts.push_back(
        is_new ? &censuses.emplace(product.rank, std::pair(product.tensor, kernels::FloatCensus()))
                      ->second.second
               : nullptr);
    each_tier([&](auto& tier) { tier.begin(of_shards, product, shared.front()); });
  }
  const bool is_any_new =
      std::ranges::any_of(counts, [](const auto* one) { return one != nullptr; });
  i64 row = 0;
  while (const auto rows = order_.rows_from(shared.front(), row)) {
    const std::span<const std::byte> bytes = stream_->take();
    kernels::FloatCensus census;  // one for all, because the bytes are the same
    for (size_t i = 0; i < shared.size(); ++i) {
      check_interrupted();
      const bool is_new = counts[i] != nullptr;
      census += multiply_rows(shared[i], of_shards, *rows, bytes, is_new, i == 0 && is_any_new);
      if (is_new) *counts[i] += census;
    }
    row = rows->end;
    if (options_.resources.on_progress) {
      options_.resources.on_progress({stream_->bytes_taken(), stored_bytes_,
                                      fmt::format("step {} of {}", layer_ + 1, layers_.size())});
    }
  }
  // The first one last, because others may repeat it.
  for (const MatrixProduct& product : std::views::reverse(shared)) {
    each_tier([&](auto& tier) { tier.end(of_shards, product); });
  }
}

/// Multiplies a chunk in every number system, with all threads. If the chunk `is_new`, also adds
/// its bytes to the comparisons with the other side and the manifest. Returns the NaN and infinite
/// numbers in it if it `is_counted`.
kernels::FloatCensus Validation::multiply_rows(const MatrixProduct& product, bool of_shards,
                                               index::Interval rows,
                                               std::span<const std::byte> bytes, bool is_new,
                                               bool is_counted) {
  const i64 parts = crew_.size() * kPartsPerThread;
  kernels::UploadRing* const ring = ring_of(product, of_shards);
  std::byte* const room = ring != nullptr ? ring->begin(bytes.size()) : nullptr;
  i64 tiers = 0;
  each_tier([&](const auto& tier) { tiers += tier.computes_here(of_shards, product) ? 1 : 0; });
  const i64 reads = is_counted || room != nullptr ? 1 : 0;  // by the jobs of the first tier
  std::vector<kernels::FloatCensus> found(static_cast<size_t>(parts));
  const i64 equalities = is_new && equality_ ? 1 : 0;
  const i64 digests = equalities + (is_new && recorded_ ? 1 : 0);
  crew_.run(digests + std::max(tiers, reads) * parts, [&](i64 job) {
    // Digests of a whole chunk take longest, so they begin first.
    if (job < equalities) {
      return equality_->add(of_shards, product, rows.begin, rows.end, bytes);
    }
    if (job < digests) {
      return recorded_->add(of_shards, product, rows.begin, rows.end, bytes);
    }
    const i64 i = job - digests;
    const i64 part = i % parts;
    if (i < parts && reads > 0) {
      const i64 first = rows.size() * part / parts * product.row_bytes();
      const i64 last = rows.size() * (part + 1) / parts * product.row_bytes();
      const auto share =
          bytes.subspan(static_cast<size_t>(first), static_cast<size_t>(last - first));
      found[static_cast<size_t>(part)] = kernels::float_census(product.dtype, share);
      if (room != nullptr && !share.empty()) std::memcpy(room + first, share.data(), share.size());
    }
    const MatrixBlock block = share_of_work(product, rows, bytes.data(), part, parts);
    i64 skipped = i / parts;
    each_tier([&](auto& tier) {
      if (tier.computes_here(of_shards, product) && skipped-- == 0) {
        tier.multiply(of_shards, product, block);
      }
    });
  });
  if (ring != nullptr) multiply_there(product, of_shards, rows, bytes, *ring);
  return std::accumulate(
      found.begin(), found.end(), kernels::FloatCensus{},
      [](kernels::FloatCensus sum, const kernels::FloatCensus& one) { return sum += one; });
}

kernels::UploadRing* Validation::ring_of(const MatrixProduct& product, bool of_shards) {
  if (rings_.empty()) return nullptr;
  return &rings_[of_shards ? static_cast<size_t>(product.rank) % rings_.size() : 0];
}

/// Sends the chunk to the accelerator, which multiplies by it while the next chunk is read.
void Validation::multiply_there(const MatrixProduct& product, bool of_shards, index::Interval rows,
                                std::span<const std::byte> bytes, kernels::UploadRing& ring) {
  const std::byte* const there = ring.send();
  const MatrixBlock all = share_of_work(product, rows, bytes.data(), 0, 1);
  each_tier([&](auto& tier) {
    if (tier.computes_there()) tier.multiply_there(of_shards, product, all, there);
  });
  ring.end();
}

void Validation::run_products(bool of_shards, size_t layer, size_t step) {
  Censuses censuses;
  for (const SharedProduct& shared : order_.products(of_shards, layer, step)) {
    multiply(shared, of_shards, censuses);
  }
  const Side& side = of_shards ? shards_ : whole_;
  for (const auto& [rank, of_tensor] : censuses) {
    add_odd_weights(side, of_shards, of_tensor.first, rank, of_tensor.second, odd_);
  }
}

void Validation::run_step(size_t layer, size_t step) {
  each_tier([&](auto& tier) { tier.begin_step(step); });
  run_products(false, layer, step);
  run_products(true, layer, step);
  each_tier([&](auto& tier) { tier.end_step(step); });
  constexpr std::array<i64, 1> kAlone{0};
  if (fabric_.is_first_process()) {
    look_at_small_weights(false, *layers_[layer].whole.flow.steps[step].op, kAlone);
  }
  std::vector<i64> ranks;
  std::ranges::set_intersection(fabric_.own(), layers_[layer].shards.devices,
                                std::back_inserter(ranks));
  look_at_small_weights(true, *layers_[layer].shards.flow.steps[step].op, ranks);
}

void Validation::look_at_small_weights(bool of_shards, const ops::BoundOp& op,
                                       std::span<const i64> ranks) {
  const Side& side = of_shards ? shards_ : whole_;
  visit_small_weights(
      side, op, ranks, [&](size_t tensor, i64 rank, std::span<const std::byte> bytes) {
        // Skips tensors that a product has read: they are counted already.
        if (!counted_.insert({of_shards, tensor, rank, -1, 0}).second) return;
        const Dtype dtype = side.tensors[tensor].dtype;
        add_odd_weights(side, of_shards, tensor, rank, kernels::float_census(dtype, bytes), odd_);
        if (equality_) equality_->add_all(of_shards, tensor, rank, bytes);
        if (recorded_) recorded_->add_all(of_shards, tensor, rank, bytes);
      });
}

/// Returns the collectives per token by the layers' flow. A hand-off counts with the layer that
/// begins with it.
Counts Validation::predicted_counts() const {
  Counts predicted;
  const auto add = [&](const ops::Exchange& exchange) {
    Counted& row = predicted[{mesh::to_string(exchange.over), exchange.move}];
    ++row.count;
    const bool is_permute = exchange.move == plan::Move::kPermute;
    const i64 senders = is_permute ? mesh::extent(shards_.mesh, exchange.over) : 1;
    row.elements += exchange.elements / senders;
  };
  for (size_t layer = stretch_.begin; layer < stretch_.end; ++layer) {
    if (layer > 0) {
      const auto& handoffs = layers_[layer - 1].shards.handoffs;
      for (const ops::ValueMove& handoff : handoffs) add(handoff.exchange);
    }
    std::ranges::for_each(model::exchanges(layers_[layer].shards.flow), add);
  }
  return predicted;
}

/// Returns the first weight whose input is gathered because it is cut in another way; empty if
/// there is none.
std::string Validation::first_realigned() const {
  for (size_t layer = stretch_.begin; layer < stretch_.end; ++layer) {
    for (const ops::Step& step : layers_[layer].shards.flow.steps) {
      if (step.is_realigned) return shards_.name(step.op->weights.front().front());
    }
  }
  return {};
}

/// Adds a row per collective and tier: the predicted and the counted numbers.
void Validation::predict(Verdict& verdict) {
  verdict.realigned = first_realigned();
  const Counts predicted = predicted_counts();
  each_tier([&](auto& tier) {
    for (const auto& [key, row] : predicted) {
      const auto found = tier.counts().find(key);
      const Counted counted = found == tier.counts().end() ? Counted{} : found->second;
      verdict.collectives.push_back({tier.verdict().kind, key.first, key.second, row.count,
                                     counted.count, row.elements * tier.rows(), counted.elements,
                                     tier.number_bytes(key.second)});
    }
  });
}

Verdict Validation::run() {
  if (stretch_.begin > 0) {
    each_tier([&](auto& tier) { tier.begin_behind(layers_[stretch_.begin - 1]); });
  }
  for (size_t layer = stretch_.begin; layer < stretch_.end; ++layer) {
    layer_ = layer;
    each_tier([&](auto& tier) { tier.begin_layer(layers_[layer], layer); });
    for (size_t step = 0; step < layers_[layer].whole.flow.steps.size(); ++step) {
      run_step(layer, step);
    }
    each_tier([](auto& tier) { tier.end_layer(); });
    if (native_) judge_rounding(*real_, *native_);
  }
  Verdict verdict;
  each_tier([&](auto& tier) { verdict.tiers.push_back(tier.verdict()); });
  verdict.digest = field_.digest();
  verdict.odd_weights = odd_;
  if (stretch_.begin < stretch_.end) {
    const std::string first = layers_[stretch_.begin].name();
    const std::string last = layers_[stretch_.end - 1].name();
    verdict.ran = first == last ? first : fmt::format("{} to {}", first, last);
  }
  verdict.tested = tensors_of(stretch_, layers_, shards_);
  verdict.judged = judged_tensors(options_.share, stretch_, layers_, shards_, order_);
  if (equality_) verdict.bytes = equality_->result(fabric_, verdict.judged);
  if (recorded_) {
    verdict.recorded = recorded_->result(fabric_.own(), fabric_.is_first_process(), verdict.judged);
  }
  verdict.bytes_read = stream_->bytes_taken();
  if (native_) verdict.native = native_->computed_by();
  if (real_) verdict.undecidable_tokens = real_->reference().undecidable();
  predict(verdict);
  const bool is_alone = fabric_.comm() == nullptr || fabric_.comm()->size() == 1;
  return is_alone ? verdict : merged(verdict, *fabric_.comm());
}

}  // namespace

Verdict validate(const Side& whole, const Side& shards, comm::Communicator* comm,
                 const ValidationOptions& options) {
  return Validation(whole, shards, comm, options).run();
}

}  // namespace shardtool::engine

#include "shardtool/engine/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <set>
#include <thread>
#include <tuple>

#include "shardtool/base/error.h"
#include "shardtool/engine/block_scales.h"
#include "shardtool/engine/byte_equality.h"
#include "shardtool/engine/chunk_stream.h"
#include "shardtool/engine/crew.h"
#include "shardtool/engine/numbers.h"
#include "shardtool/engine/odd_weights.h"
#include "shardtool/engine/tier.h"
#include "shardtool/engine/verdict_merge.h"
#include "shardtool/model/handoff.h"

namespace shardtool::engine {
namespace {

/// Tokens of the field run. One would do for all that is linear; the others are there because a
/// query has to meet keys of another position, which rotations turn by other angles, and because a
/// window has to leave a token out.
constexpr i64 kFieldLength = 3;
constexpr i64 kFieldWindow = 2;
/// A sliding window of the f64 run is at most half of the tokens, so that it shows.
constexpr i64 kWindowShare = 2;
constexpr int kReaders = 2;
constexpr i64 kMostChunkBytes = 4 << 20;
constexpr i64 kChunksInBudget = 8;

std::vector<LayerPair> pair_layers(const Side& whole, const Side& shards) {
  const auto& layers = whole.model->layers;
  std::vector<LayerPair> pairs(layers.size());
  model::Value whole_x, shards_x;
  for (size_t i = 0; i < layers.size(); ++i) {
    LayerPair& pair = pairs[i];
    pair.whole = &layers[i];
    pair.shards = &shards.model->layers.at(i);
    pair.entry = shards_x;
    pair.whole_flow = model::flow(*whole.model, *pair.whole, whole.layouts, whole.mesh, whole_x);
    pair.shards_flow =
        model::flow(*shards.model, *pair.shards, shards.layouts, shards.mesh, shards_x);
    pair.devices = model::devices_of(*pair.shards, shards.layouts);
    if (i > 0) {
      pairs[i - 1].shards_flow.handoff = model::handoff(*pairs[i - 1].shards, *pair.shards,
                                                        shards.layouts, shards.mesh, pair.entry);
    }
    const auto& a = pair.whole_flow.steps;
    const auto& b = pair.shards_flow.steps;
    const auto same_op = [](const model::Step& x, const model::Step& y) {
      return x.op->op == y.op->op && x.op->form == y.op->form;
    };
    if (!std::equal(a.begin(), a.end(), b.begin(), b.end(), same_op)) {
      throw Error(
          ErrorCode::kUnsupported,
          fmt::format("the shards have other tensors in {} than the whole model", pair.name()));
    }
  }
  return pairs;
}

/// Everything that is read, in the order in which it is needed.
class Reading {
 public:
  Reading(const std::vector<LayerPair>& layers, const Side& whole, const Side& shards,
          const std::vector<i64>& own, bool reads_whole, i64 chunk_bytes)
      : layers_(layers),
        whole_(whole),
        shards_(shards),
        own_(own),
        reads_whole_(reads_whole),
        chunk_bytes_(chunk_bytes) {}

  /// The products of one step on one side, in order.
  std::vector<Product> products(bool of_shards, size_t layer, size_t step) const {
    const LayerPair& pair = layers_[layer];
    if (!of_shards) {
      if (!reads_whole_) return {};
      return products_of(whole_, *pair.whole_flow.steps[step].op, 0);
    }
    std::vector<Product> all;
    for (const i64 rank : own_) {
      if (!std::binary_search(pair.devices.begin(), pair.devices.end(), rank)) continue;
      for (Product& product : products_of(shards_, *pair.shards_flow.steps[step].op, rank)) {
        all.push_back(std::move(product));
      }
    }
    return all;
  }

  i64 rows_per_chunk(const Product& product) const {
    return std::max<i64>(1, chunk_bytes_ / std::max<i64>(1, product.row_bytes()));
  }

  std::optional<ReadRequest> next() {
    while (row_ >= rows_) {
      if (++product_ < products_.size()) {
        start_product();
      } else if (!next_products()) {
        return std::nullopt;
      }
    }
    const Product& product = products_[product_];
    const i64 end = std::min(rows_, row_ + rows_per_chunk(product));
    const ReadRequest request{of_shards_ ? shards_.weights : whole_.weights,
                              {product.tensor, product.rank, product.outer, row_, end},
                              (end - row_) * product.row_bytes()};
    row_ = end;
    return request;
  }

 private:
  void start_product() {
    row_ = 0;
    rows_ = products_[product_].rows.local_size();
  }
  /// The next step, of the whole model first. False at the end.
  bool next_products() {
    do {
      if (is_begun_ && of_shards_) ++step_;
      of_shards_ = is_begun_ && !of_shards_;
      is_begun_ = true;
      while (layer_ < layers_.size() && step_ >= layers_[layer_].whole_flow.steps.size()) {
        ++layer_;
        step_ = 0;
      }
      if (layer_ >= layers_.size()) return false;
      products_ = products(of_shards_, layer_, step_);
    } while (products_.empty());
    product_ = 0;
    start_product();
    return true;
  }

  const std::vector<LayerPair>& layers_;
  const Side& whole_;
  const Side& shards_;
  const std::vector<i64>& own_;
  bool reads_whole_;
  i64 chunk_bytes_;

  bool is_begun_ = false;
  bool of_shards_ = false;
  size_t layer_ = 0;
  size_t step_ = 0;
  std::vector<Product> products_;
  size_t product_ = 0;
  i64 row_ = 0;
  i64 rows_ = 0;
};

Inputs field_inputs(const ValidationOptions& options) {
  Inputs inputs;
  inputs.length = kFieldLength;
  inputs.seed = options.seed;
  inputs.map = options.map;
  inputs.most_window = kFieldWindow;
  return inputs;
}

Inputs real_inputs(const Side& whole, const ValidationOptions& options) {
  Inputs inputs;
  inputs.length = options.length;
  inputs.most_window = std::max<i64>(1, options.length / kWindowShare);
  const auto vocabulary = static_cast<std::uint64_t>(whole.model->sizes.at("vocab"));
  for (i64 t = 0; t < options.length; ++t) {
    inputs.tokens.push_back(static_cast<i64>(
        kernels::hashed(options.seed, static_cast<std::uint64_t>(t)) % vocabulary));
  }
  return inputs;
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
        crew_(options.threads > 0 ? options.threads
                                  : static_cast<int>(std::thread::hardware_concurrency())),
        reading_(layers_, whole, shards, fabric_.own(), fabric_.is_first_process(),
                 std::min(kMostChunkBytes, options.max_memory / kChunksInBudget)),
        field_("field", whole, shards, comm, field_inputs(options), 0) {
    if (options.with_f64) {
      real_ = std::make_unique<Tier<double>>("f64", whole, shards, comm,
                                             real_inputs(whole, options), options.tolerance);
    }
    if (options.with_f64 && options.with_native) {
      Inputs inputs = real_inputs(whole, options);
      inputs.rounds_to_bf16 = true;
      native_ = std::make_unique<Tier<float>>("native", whole, shards, comm, std::move(inputs),
                                              std::numeric_limits<double>::infinity());
    }
    if (options.compares_bytes) equality_.emplace(whole, shards);
    stream_ = std::make_unique<ChunkStream>([this] { return reading_.next(); }, options.max_memory,
                                            kReaders);
  }

  Verdict run();

 private:
  template <class Action>
  void each_tier(const Action& action) {
    action(field_);
    if (real_) action(*real_);
    if (native_) action(*native_);
  }
  void run_step(size_t layer, size_t step);
  void run_products(bool of_shards, size_t layer, size_t step);
  void look_at_small_weights(bool of_shards, const model::BoundOp& op, std::span<const i64> ranks);
  void multiply(const Product& product, bool of_shards);
  void judge_rounding();
  void predict(Verdict& verdict) const;
  void note_tested(Verdict& verdict) const;

  const Side& whole_;
  const Side& shards_;
  const ValidationOptions& options_;
  Fabric fabric_;
  std::vector<LayerPair> layers_;
  Crew crew_;
  Reading reading_;
  Tier<Field> field_;
  std::unique_ptr<Tier<double>> real_;
  std::unique_ptr<Tier<float>> native_;
  std::vector<OddWeight> odd_;
  std::optional<ByteEquality> equality_;
  std::set<std::tuple<bool, size_t, i64, i64>> counted_;  ///< matrices whose numbers were looked at
  std::unique_ptr<ChunkStream> stream_;  ///< last: its threads use what stands above
};

void Validation::multiply(const Product& product, bool of_shards) {
  const i64 rows = product.rows.local_size();
  // A tied table is read twice and counted once.
  const bool is_new =
      counted_.insert({of_shards, product.tensor, product.rank, product.outer}).second;
  each_tier([&](auto& tier) { tier.run(of_shards).begin(product); });
  for (i64 begin = 0; begin < rows;) {
    if (options_.cancel != nullptr && *options_.cancel) {
      throw Error(ErrorCode::kInterrupted, "validating was interrupted");
    }
    const i64 end = std::min(rows, begin + reading_.rows_per_chunk(product));
    const auto bytes = stream_->take();
    const i64 parts = crew_.size();
    const i64 tiers = 1 + (real_ ? 1 : 0) + (native_ ? 1 : 0);
    const bool is_compared = is_new && equality_;
    crew_.run(tiers * parts + (is_compared ? 1 : 0), [&](i64 part) {
      if (part == tiers * parts) {
        equality_->add(of_shards, product, begin, end, bytes);
      } else if (part < parts) {
        field_.run(of_shards).multiply(product, begin, end, bytes.data(), part, parts);
      } else if (part < 2 * parts) {
        real_->run(of_shards).multiply(product, begin, end, bytes.data(), part - parts, parts);
      } else {
        native_->run(of_shards).multiply(product, begin, end, bytes.data(), part - 2 * parts,
                                         parts);
      }
    });
    if (is_new) {
      add_odd_weights(of_shards ? shards_ : whole_, of_shards, product.tensor, product.rank, bytes,
                      odd_);
    }
    begin = end;
  }
  each_tier([&](auto& tier) { tier.run(of_shards).end(product); });
}

void Validation::run_products(bool of_shards, size_t layer, size_t step) {
  for (const Product& product : reading_.products(of_shards, layer, step)) {
    multiply(product, of_shards);
  }
}

void Validation::run_step(size_t layer, size_t step) {
  each_tier([&](auto& tier) { tier.begin_step(step); });
  run_products(false, layer, step);
  run_products(true, layer, step);
  each_tier([&](auto& tier) { tier.end_step(step); });
  constexpr std::array<i64, 1> kAlone{0};
  if (fabric_.is_first_process()) {
    look_at_small_weights(false, *layers_[layer].whole_flow.steps[step].op, kAlone);
  }
  std::vector<i64> ranks;
  std::ranges::set_intersection(fabric_.own(), layers_[layer].devices, std::back_inserter(ranks));
  look_at_small_weights(true, *layers_[layer].shards_flow.steps[step].op, ranks);
}

void Validation::look_at_small_weights(bool of_shards, const model::BoundOp& op,
                                       std::span<const i64> ranks) {
  const Side& side = of_shards ? shards_ : whole_;
  visit_small_weights(side, op, ranks,
                      [&](size_t tensor, i64 rank, std::span<const std::byte> bytes) {
                        add_odd_weights(side, of_shards, tensor, rank, bytes, odd_);
                        if (equality_) equality_->add_all(of_shards, tensor, rank, bytes);
                      });
}

/// rho = |shards - exact| / |whole - exact|, both in bf16: about 1 where the shards round as the
/// whole model does. Every layer begins at the exact values.
void Validation::judge_rounding() {
  const Part<double>& exact = real_->whole_result();
  const Part<float>& whole = native_->whole_result();
  double of_whole = 0;
  double of_shards = 0;
  for (const auto& [rank, part] : native_->shards_result()) {
    for (i64 t = 0; t < options_.length; ++t) {
      for (const index::Piece& piece : part.features.pieces()) {
        for (i64 i = 0; i < piece.size; ++i) {
          const double r = exact.row(t)[piece.global + i];
          of_whole += std::pow(whole.row(t)[piece.global + i] - r, 2);
          of_shards += std::pow(part.row(t)[piece.local + i] - r, 2);
        }
      }
    }
  }
  double& worst = native_->verdict().worst;
  if (of_whole > 0) worst = std::max(worst, std::sqrt(of_shards / of_whole));
  Part<float> x = whole;
  for (size_t i = 0; i < x.data.size(); ++i) x.data[i] = static_cast<float>(exact.data[i]);
  native_->carry(std::move(x));
}

/// What the flow of the layers says, beside what was carried out.
void Validation::predict(Verdict& verdict) const {
  Counts predicted;
  const i64 tokens = kFieldLength;
  for (const LayerPair& layer : layers_) {
    for (const model::Exchange& exchange : model::exchanges(layer.shards_flow)) {
      Counted& row = predicted[{mesh::to_string(exchange.over), exchange.move}];
      ++row.count;
      const bool is_permute = exchange.move == plan::Move::kPermute;
      const i64 senders = is_permute ? mesh::extent(shards_.mesh, exchange.over) : 1;
      row.elements += exchange.elements / senders * tokens;
    }
  }
  for (const auto& [key, row] : predicted) {
    const auto found = field_.counts().find(key);
    const Counted counted = found == field_.counts().end() ? Counted{} : found->second;
    verdict.collectives.push_back(
        {key.first, key.second, row.count, counted.count, row.elements, counted.elements});
  }
}

void Validation::note_tested(Verdict& verdict) const {
  std::set<size_t> tested;
  for (const LayerPair& layer : layers_) {
    for (const model::BoundOp& op : layer.shards->ops) {
      for (const model::BoundWeight& weight : op.weights) {
        for (const size_t tensor : weight) {
          tested.insert(tensor);
          const auto scales = bits(shards_.tensors[tensor].dtype) == 8
                                  ? scale_tensor_of(shards_, tensor)
                                  : std::nullopt;
          if (scales) tested.insert(*scales);
        }
      }
    }
  }
  verdict.tested.assign(tested.begin(), tested.end());
}

Verdict Validation::run() {
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    if (options_.on_layer) options_.on_layer(layer, layers_.size());
    each_tier([&](auto& tier) { tier.begin_layer(layers_[layer], layer); });
    for (size_t step = 0; step < layers_[layer].whole_flow.steps.size(); ++step) {
      run_step(layer, step);
    }
    each_tier([](auto& tier) { tier.end_layer(); });
    if (native_) judge_rounding();
  }
  Verdict verdict;
  each_tier([&](auto& tier) { verdict.tiers.push_back(tier.verdict()); });
  verdict.digest = field_.digest();
  verdict.odd_weights = odd_;
  if (equality_) verdict.bytes = equality_->result(fabric_);
  verdict.bytes_read = stream_->bytes_taken();
  if (real_) verdict.undecidable_tokens = real_->whole().undecidable();
  predict(verdict);
  note_tested(verdict);
  const bool is_alone = fabric_.comm() == nullptr || fabric_.comm()->size() == 1;
  return is_alone ? verdict : merged(verdict, *fabric_.comm());
}

}  // namespace

Verdict validate(const Side& whole, const Side& shards, comm::Communicator* comm,
                 const ValidationOptions& options) {
  return Validation(whole, shards, comm, options).run();
}

}  // namespace shardtool::engine

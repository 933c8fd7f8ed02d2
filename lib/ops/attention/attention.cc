#include "lib/ops/attention/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/ops/attention/window.h"
#include "lib/ops/decoder.h"
#include "lib/ops/pricing.h"
#include "lib/ops/walk.h"
#include "lib/ops/widths.h"

namespace shardtool::ops {
namespace {

using index::AxisMap;
using layout::Layout;
using plan::Placement;
using Kind = plan::Placement::Kind;

Window decode_window(const OpDecoder& in, const JsonValue& value) {
  Window window;
  value.object({{"config", [&](const JsonValue& v) { window.config = v.nonempty_text(); }, true},
                {"before", [&](const JsonValue& v) { window.before = v.nonempty_text(); }},
                {"around", [&](const JsonValue& v) { window.around = v.nonempty_text(); }},
                {"when", [&](const JsonValue& v) { window.when = v.nonempty_text(); }},
                {"default", [&](const JsonValue& v) { window.otherwise = v.integer(1); }},
                {"kind",
                 [&](const JsonValue& v) {
                   window.kind = v.one_of<Window::Kind>(
                       {{"sliding", Window::Kind::kSliding}, {"chunked", Window::Kind::kChunked}});
                 }},
                {"layers", [&](const JsonValue& v) {
                   window.layers =
                       decode_layer_set(v, in.context().layer_sets, in.context().numbers);
                 }}});
  return window;
}

PositionIndex decode_index(OpDecoder& in, const JsonValue& value) {
  PositionIndex index;
  value.object({in.dim("heads", index.heads), in.dim("dim", index.dim),
                in.dim("top_k", index.top_k), in.flag("made_before", index.made_before)});
  return index;
}

Buckets decode_buckets(OpDecoder& in, const JsonValue& value) {
  Buckets buckets;
  value.object({{"kind",
                 [&buckets](const JsonValue& v) {
                   buckets.kind = v.one_of<Buckets::Kind>({{"one_sided", Buckets::Kind::kOneSided},
                                                           {"signed", Buckets::Kind::kSigned}});
                 }},
                in.dim("count", buckets.count),
                in.number("most_distance", buckets.most_distance, true),
                in.flag("of_keys", buckets.of_keys)});
  return buckets;
}

/// Sum of 1 to n.
double rising(i64 n) {
  return static_cast<double>(n) * static_cast<double>(n + 1) / 2;
}

/// Positions that the first n tokens of a sequence attend to at themselves and before, together:
/// token t sees min(t, reach), or in chunks (t - 1) mod reach + 1.
double positions_of_first(i64 n, i64 reach, bool is_chunked) {
  if (is_chunked) return static_cast<double>(n / reach) * rising(reach) + rising(n % reach);
  const i64 growing = std::min(n, reach);
  return rising(growing) + static_cast<double>(n - growing) * static_cast<double>(reach);
}

/// Average number of positions that a token of the pass attends to; at most `window`.
double positions(const Attention& op, const Phase& phase, std::optional<i64> window) {
  const i64 reach = window ? std::min(*window, phase.context) : phase.context;
  const bool is_chunked = window && op.window && op.window->kind == Window::Kind::kChunked;
  const i64 first = phase.is_prefill ? phase.cached : phase.context - 1;
  const double all = positions_of_first(phase.context, reach, is_chunked) -
                     positions_of_first(first, reach, is_chunked);
  const double back = all / static_cast<double>(phase.context - first);
  // A token whose attention is not causal sees as many positions on the other side.
  return op.causal || !phase.is_prefill ? back : 2 * back - 1;
}

/// Adds the cost of the index's scores for all positions, or entries, by their stored keys. Returns
/// the number of positions that are attended to.
i64 add_index(const PositionIndex& index, double positions, i64 kept, Pricing& pricing) {
  if (index.made_before) return pricing.model.size(index.top_k);
  const i64 dim = pricing.model.size(index.dim);
  pricing.add_flops(plan::Arithmetic::kBf16,
                    2 * static_cast<double>(pricing.phase.tokens) * positions *
                        static_cast<double>(pricing.model.size(index.heads) * dim));
  pricing.sum.cache_bytes += static_cast<double>(pricing.phase.sequences * kept) *
                             static_cast<double>(dim * pricing.kv_cache_bits) / 8;
  return pricing.model.size(index.top_k);
}

/// Returns the largest number of KV heads that the queries of one device attend to. `queries` are
/// the features of all heads on each device.
i64 most_kv_heads(const Value& queries, i64 features_of_group) {
  i64 most = 0;
  for (const AxisMap& map : queries.features) {
    std::set<i64> groups;
    for (const index::Piece& piece : map.pieces()) {
      const i64 last = (piece.global + piece.size - 1) / features_of_group;
      for (i64 g = piece.global / features_of_group; g <= last; ++g) groups.insert(g);
    }
    most = std::max(most, std::ssize(groups));
  }
  return most;
}

/// Returns the numbers that the busiest device caches per position: of the KV heads that it has
/// and its queries attend to.
i64 cached_elements(const Attention& op, const Walk& walk, const Value& queries, const Value& keys,
                    const Value& values) {
  if (op.cache) return walk.size(*op.cache);
  const i64 key_dim = walk.size(op.key_dim);
  const i64 group = walk.size(op.heads) / walk.size(op.kv_heads) * key_dim;
  const i64 needed = most_kv_heads(queries, group) * (key_dim + walk.size(op.value_dim));
  return std::min(most_features(keys) + most_features(values), needed);
}

/// Returns the products of the pass: each token's with the `seen` positions that it attends to, its
/// scores by the keys and the sum of values. Of earlier positions the cache may have only latents.
/// A decode step multiplies them with queries that went through the keys' projection, and sends
/// their sum through that of the values: the same numbers in another order, since making keys and
/// values of each would cost more. A prefill behind cached positions does what costs less.
double products_of(const Attention& op, double seen, const Pricing& pricing) {
  const Work& work = pricing.step.work;
  const double met = static_cast<double>(pricing.phase.tokens) * seen;
  const i64 features = work.input_elements + work.output_elements;
  const double with_keys = met * static_cast<double>(features);
  if (!op.latent) return with_keys;
  const i64 heads = work.input_elements / pricing.model.size(op.key_dim);
  const i64 latent = pricing.model.size(*op.latent);
  const i64 rotated = pricing.model.size(*op.cache) - latent;  // not made of latents
  const double with_latents = met * static_cast<double>(heads * (2 * latent + rotated));
  if (!pricing.phase.is_prefill) return with_latents;
  if (pricing.phase.cached == 0) return with_keys;
  const double made = static_cast<double>(pricing.phase.sequences * pricing.phase.cached) *
                      static_cast<double>(latent * (features - heads * rotated));
  return std::min(with_keys + made, with_latents);
}

}  // namespace

void decode(PositionBias& op, OpDecoder& in) {
  in.finish({in.weight("table",
                       [&op] {
                         return std::vector{op.buckets, op.heads};
                       }),
             in.dim("heads", op.heads), in.dim("buckets", op.buckets)});
}

std::vector<plan::OpRow> rules(const PositionBias& /*op*/, const RuleSite& site) {
  return {site.whole().front(), site.row({}, {kCut}, kCut)};
}

Value place(const PositionBias& op, Walk& walk, const BoundOp& bound) {
  const Layout& table = walk.layout_of(bound.weights.front());
  const i64 buckets = walk.size(op.buckets);
  Value y = walk.whole(walk.size(op.heads) * buckets);
  y.features = walk.held(table, 1);
  for (AxisMap& map : y.features) map = index::scale(map, buckets);
  const auto by_heads = walk.cut_by(table, 1);
  const auto rules = walk.rules(bound);
  for (size_t a = 0; a < walk.axes(); ++a) {
    y.on[a] = rule_for(rules, 0, by_heads[a] ? Placement::sharded(1) : kWhole).result;
  }
  return y;
}

void decode(BucketScores& op, OpDecoder& in) {
  const auto of_norm = [&op] { return std::vector{op.size}; };
  in.finish({in.weight("table",
                       [&op] {
                         return std::vector{op.buckets.count, op.size};
                       }),
             in.weight("norm", of_norm),
             in.weight("norm_bias", of_norm),
             in.weight("weight",
                       [&op] {
                         return std::vector{op.rows, op.size};
                       }),
             in.weight("bias", [&op] { return std::vector{op.rows}; }),
             in.dim("rows", op.rows),
             in.dim("head_dim", op.head_dim),
             in.dim("size", op.size),
             {"buckets", [&](const JsonValue& v) { op.buckets = decode_buckets(in, v); }, true},
             in.number("eps", op.eps, true),
             in.number("scale", op.scale),
             in.optional_dim("scale_of", op.scale_of)});
}

void check(const BucketScores& op, const Widths& widths) {
  widths.in_units(0, widths.size(op.head_dim));
}

/// Heads are cut like the queries; the table is whole.
std::vector<plan::OpRow> rules(const BucketScores& /*op*/, const RuleSite& site) {
  const plan::Placement by_rows = Placement::sharded(0);
  auto rows = site.by_tokens();
  rows.push_back(site.row({kCut}, {kWhole, kWhole, kWhole, by_rows, by_rows}, kCut));
  return rows;
}

Value place(const BucketScores& op, Walk& walk, const BoundOp& bound) {
  constexpr size_t kProjection = 3;
  for (size_t i = 0; i < kProjection; ++i) walk.refuse_cut(bound.weights[i], "table of buckets");
  Value y = walk.nonlinear(bound);
  const i64 head_dim = walk.size(op.head_dim);
  const i64 buckets = walk.size(op.buckets.count);
  y.features = walk.rescaled(bound, y.features, head_dim, buckets);
  y.width = y.width / head_dim * buckets;
  return y;
}

/// The keys of the buckets are computed once, for any number of tokens.
void price(const BucketScores& op, Pricing& pricing) {
  const auto buckets = static_cast<double>(pricing.model.size(op.buckets.count));
  const auto rows =
      static_cast<double>(pricing.tokens) + static_cast<double>(pricing.model.size(op.size));
  pricing.add_flops(pricing.arithmetic(),
                    2 * buckets * static_cast<double>(pricing.step.work.input_elements) * rows);
  pricing.sum.weight_bytes += pricing.weight_bytes();
}

bool is_launched(const BucketScores& /*op*/) {
  return true;
}

void decode(Attention& op, OpDecoder& in) {
  in.finish({in.dim("heads", op.heads),
             in.dim("kv_heads", op.kv_heads),
             in.dim("key_dim", op.key_dim),
             in.dim("value_dim", op.value_dim),
             in.number("scale", op.scale),
             in.optional_dim("scale_of", op.scale_of),
             {"mask",
              [&op](const JsonValue& v) {
                op.causal = v.one_of<bool>({{"causal", true}, {"bidirectional", false}});
              },
              true},
             {"window", [&](const JsonValue& v) { op.window = decode_window(in, v); }},
             in.number("softcap", op.softcap),
             {"alibi",
              [&op](const JsonValue& v) {
                op.alibi = v.one_of<Alibi>(
                    {{"before_scale", Alibi::kBeforeScale}, {"after_scale", Alibi::kAfterScale}});
              }},
             in.weight(
                 "sinks", [&op] { return std::vector{op.heads}; }, false),
             in.flag("yarn_scale", op.yarn_scale),
             in.optional_dim("cache", op.cache),
             in.optional_dim("latent", op.latent),
             {"index", [&](const JsonValue& v) { op.index = decode_index(in, v); }},
             in.optional_dim("entries", op.entries),
             {"buckets", [&](const JsonValue& v) { op.buckets = decode_buckets(in, v); }}});
  constexpr size_t kOperands = 3;
  const size_t wanted =
      (op.index ? 2 * kOperands : kOperands) + (op.entries ? 2 : 0) + biases_of(op);
  if (in.op().in.size() != wanted) {
    in.value().refuse(
        "an attention with three inputs, three of its index, two of its entries and those of its "
        "buckets");
  }
}

void check(const Attention& op, const Widths& widths) {
  const i64 heads = widths.positive(op.heads);
  const i64 kv_heads = widths.positive(op.kv_heads);
  if (heads % kv_heads != 0) {
    throw widths.error(fmt::format("{} heads cannot share {} evenly", heads, kv_heads));
  }
  widths.exactly(0, heads * widths.positive(op.key_dim));
  widths.exactly(1, kv_heads * widths.size(op.key_dim));
  widths.exactly(2, kv_heads * widths.positive(op.value_dim));
  if (op.latent && (!op.cache || widths.positive(*op.latent) > widths.positive(*op.cache))) {
    throw widths.error("a latent is a part of what is cached, and \"cache\" has no room for it");
  }
  if (op.index) {
    widths.exactly(3, widths.positive(op.index->heads) * widths.size(op.index->dim));
    widths.exactly(4, widths.positive(op.index->dim));
    widths.exactly(5, widths.size(op.index->heads));
  }
  if (op.entries) {
    const size_t first = op.index ? 6 : 3;
    widths.exactly(first, kv_heads * widths.size(op.key_dim));
    widths.exactly(first + 1, kv_heads * widths.size(op.value_dim));
  }
  for (size_t i = widths.given().size() - biases_of(op); i < widths.given().size(); ++i) {
    widths.exactly(i, heads * widths.positive(op.buckets->count));
  }
}

/// Keys, values and biases are cut like the queries, or the keys and values are whole; those of an
/// index and of entries are whole. Devices with their own queries read all keys, unless a bias
/// needs its tokens, too.
std::vector<plan::OpRow> rules(const Attention& op, const RuleSite& site) {
  const size_t biases = site.inputs() - biases_of(op);
  const auto with = [&](Placement queries, Placement keys, Placement index_queries) {
    std::vector<Placement> in(site.inputs(), kWhole);
    in[0] = queries;
    in[1] = in[2] = keys;
    if (op.index) in[3] = in[5] = index_queries;
    if (queries == kCut) std::fill(in.begin() + static_cast<i64>(biases), in.end(), kCut);
    return in;
  };
  const std::vector<Placement> sinks(site.weights(), Placement::sharded(0));
  std::vector<plan::OpRow> rows = site.whole();
  rows.push_back(site.row(with(kCut, kCut, kWhole), sinks, kCut));
  rows.push_back(site.row(with(kCut, kWhole, kWhole), sinks, kCut));
  if (!op.buckets) rows.push_back(site.row(with(kTokens, kWhole, kTokens), kTokens));
  return rows;
}

/// Devices need the keys, values and biases of their queries' heads.
Value place(const Attention& op, Walk& walk, const BoundOp& bound) {
  Value& q = walk.in(bound, 0);
  const size_t biases = bound.op->in.size() - biases_of(op);
  std::vector<bool> whole_queries(walk.axes());
  walk.reduce_all(q);
  for (size_t a = 0; a < walk.axes(); ++a) whole_queries[a] = !q.on[a].is(Kind::kSharded);
  for (size_t i = 1; i < bound.op->in.size(); ++i) {
    walk.reduce_all(walk.in(bound, i));
    if (i < 3 || i >= biases) walk.gather(walk.in(bound, i), whole_queries);
    if (i >= 3 && i < biases) walk.make_whole(walk.in(bound, i));
  }
  const i64 key_dim = walk.size(op.key_dim);
  const i64 value_dim = walk.size(op.value_dim);
  const i64 of_shared = walk.size(op.heads) / walk.size(op.kv_heads) * key_dim;
  walk.check_covers(walk.over_values(bound, 1, key_dim, of_shared), q);
  walk.check_covers(walk.over_values(bound, 2, value_dim, of_shared), q);
  for (size_t i = biases; i < bound.op->in.size(); ++i) {
    walk.check_covers(walk.over_values(bound, i, walk.size(op.buckets->count), key_dim), q);
  }
  Value y = q;
  y.width = q.width / key_dim * value_dim;
  y.features = walk.rescaled(bound, q.features, key_dim, value_dim);
  Step& step = walk.step();
  const Value& keys = walk.in(bound, 1);
  step.reads_prompt = keys.of_prompt && !step.of_prompt;
  step.work.cache_elements = cached_elements(op, walk, q, keys, walk.in(bound, 2));
  return y;
}

void price(const Attention& op, Pricing& pricing) {
  const Work& work = pricing.step.work;
  const Phase& phase = pricing.phase;
  auto window = window_of(op, pricing.model.config, pricing.layer);
  double entries = 0;
  i64 kept_entries = 0;
  if (op.entries) {
    const i64 every = pricing.model.size(*op.entries);
    entries = positions(op, phase, std::nullopt) / static_cast<double>(every);
    kept_entries = phase.context / every;
    if (op.index) {
      const i64 most = add_index(*op.index, entries, kept_entries, pricing);
      entries = std::min(entries, static_cast<double>(most));
      kept_entries = std::min(kept_entries, most);
    }
  } else if (op.index) {
    window = add_index(*op.index, positions(op, phase, window), phase.context, pricing);
  }
  const double seen = positions(op, phase, window) + entries;
  const double flops = 2 * products_of(op, seen, pricing);
  pricing.add_flops(plan::Arithmetic::kBf16, flops);
  pricing.sum.attention_flops += flops;
  const i64 kept = (window ? std::min(*window, phase.context) : phase.context) + kept_entries;
  pricing.sum.cache_bytes += static_cast<double>(phase.sequences * kept) *
                             static_cast<double>(work.cache_elements * pricing.kv_cache_bits) / 8;
}

bool is_launched(const Attention& /*op*/) {
  return true;
}

}  // namespace shardtool::ops

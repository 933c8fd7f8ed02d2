#include "lib/api/planning/search/replica_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "lib/api/planning/search/replica_prices.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/plan/reshard_time.h"

namespace shardtool::api {
namespace {

/// Formats a rate with three digits, not above it.
std::string rate_text(double per_s) {
  constexpr int kDigits = 3;
  const double scale = std::pow(10, std::floor(std::log10(per_s)) - kDigits + 1);
  return fmt::format("{:.6g}", std::floor(per_s / scale) * scale);
}

/// Prices the layouts of one replica, which differ in dp alone.
class ReplicaSearch {
 public:
  ReplicaSearch(const SearchOptions& options, const ServedModel& model,
                const std::optional<MovedWeights>& moved)
      : options_(options), model_(model), moved_(moved) {}

  PricedLayouts run(std::vector<ServingLayout> layouts) && {
    if (!options_.request_rate) refuse_idle(layouts);
    if (!layouts.empty()) add_replica(layouts);
    if (moved_) add_moves();
    return std::move(found_);
  }

 private:
  void refuse(const std::vector<ServingLayout>& layouts, const char* constraint,
              const std::string& reason) {
    for (const ServingLayout& layout : layouts)
      found_.refused.push_back({model_.searched(), layout, constraint, reason});
  }

  /// Refuses layouts with more replicas than clients.
  void refuse_idle(std::vector<ServingLayout>& layouts) {
    const i64 most_clients = std::ranges::max(options_.concurrency);
    for (const ServingLayout& layout : layouts) {
      if (layout.dp <= most_clients) continue;
      refuse(
          {layout}, "clients",
          fmt::format("{} for {}", plural(layout.dp, "replica"), plural(most_clients, "client")));
    }
    std::erase_if(layouts, [most_clients](const auto& layout) { return layout.dp > most_clients; });
  }

  void add_replica(const std::vector<ServingLayout>& layouts) {
    const std::string too_small = model_.too_small(layouts.front());
    std::unique_ptr<PlacedReplica> replica;
    try {
      replica = model_.place(layouts.front());
    } catch (const Error& error) {
      const char* const constraint = constraint_of(error);
      if (constraint == nullptr) throw;
      return refuse(layouts, too_small.empty() ? constraint : "memory",
                    too_small.empty() ? error.what() : too_small);
    }
    for (const std::string& kv_dtype : kv_dtypes_of(options_))
      add_rows(*replica, layouts, kv_dtype, too_small);
  }

  /// Adds the rows of a type of the cache; of a replica that is too small those beyond memory.
  void add_rows(const PlacedReplica& replica, const std::vector<ServingLayout>& layouts,
                const std::string& kv_dtype, std::string why_not) {
    ReplicaMemory memory;
    if (why_not.empty()) {
      memory = model_.memory(replica, kv_dtype);
      if (memory.places == 0)
        why_not = fmt::format("a device needs {} for one sequence", format_bytes(memory.total));
    }
    if (!why_not.empty()) refuse(layouts, "memory", why_not);
    ReplicaPrices prices(options_, model_, replica, layouts.front(), kv_dtype);
    for (const ServingLayout& layout : layouts) {
      ServingRow row;
      row.model = model_.searched();
      row.layout = layout;
      row.kv_dtype = kv_dtype;
      row.weights = memory.weights;
      row.total = memory.total;
      row.per_sequence = memory.per_sequence;
      row.fits = checked_mul(memory.places, layout.dp).value_or(memory.places);
      if (options_.request_rate) add_load(row, memory.places, why_not, prices);
      for (const i64 clients : options_.concurrency) {
        row.concurrency = clients;
        if (clients >= layout.dp) add_load(row, memory.places, why_not, prices);
      }
    }
  }

  /// Adds the rows of a load.
  void add_load(ServingRow row, i64 places, const std::string& why_not, ReplicaPrices& prices) {
    const bool is_cut = options_.plan.workload.sequence_parallel && row.layout.tp > 1;
    for (const bool cut : {false, true}) {
      if (cut && !is_cut) continue;
      row.sequence_parallel = cut;
      const auto priced = places > 0 ? priced_rows(row, places, prices) : std::vector<ServingRow>();
      found_.rows.insert(found_.rows.end(), priced.begin(), priced.end());
      if (priced.empty() && places > 0) refuse_rate(row, places, prices);
      const i64 clients = ceil_div(priced.empty() ? 1 : priced[0].concurrency, row.layout.dp);
      if (priced.empty() || clients > places) add_beyond(row, places, why_not, prices);
    }
  }

  /// Returns the row with as many sequences at once as have places and, unless the objective is the
  /// speed of a user, those that no other number of sequences improves: if all break the limit of
  /// TPOT, the most that keep it; and fewer that fill the groups evenly, if they serve more tokens.
  /// Returns none for a rate that is too high.
  std::vector<ServingRow> priced_rows(const ServingRow& row, i64 places, ReplicaPrices& prices) {
    const auto all = prices.priced(row, places);
    if (!all) return {};
    std::vector<ServingRow> rows{*all};
    if (options_.request_rate || options_.objective == plan::Objective::kUser) return rows;
    if (!keeps_tpot(*all)) {
      const i64 most = most_in_tpot(row, all->service.running, prices);
      if (most == 0) return rows;
      rows.push_back(*prices.priced(row, most));
    }
    const i64 running = rows.back().service.running;
    const i64 even = running / prices.stride() * prices.stride();
    if (even == 0 || even == running) return rows;
    const auto evenly = prices.priced(row, even);
    if (evenly->offer.tokens_per_s > rows.back().offer.tokens_per_s) rows.push_back(*evenly);
    return rows;
  }

  /// Returns the most sequences, below `too_many`, that keep the limit of TPOT; 0 if not even one.
  i64 most_in_tpot(const ServingRow& row, i64 too_many, ReplicaPrices& prices) const {
    i64 most = 0;
    while (too_many - most > 1) {
      const i64 middle = std::midpoint(too_many, most);
      (keeps_tpot(*prices.priced(row, middle)) ? most : too_many) = middle;
    }
    return most;
  }

  bool keeps_tpot(const ServingRow& row) const {
    const auto& limit = options_.limits.tpot_us;
    return !limit || !row.offer.tpot_us || *row.offer.tpot_us <= *limit;
  }

  void refuse_rate(const ServingRow& row, i64 places, ReplicaPrices& prices) {
    const double most = static_cast<double>(row.layout.dp) *
                        prices.most_requests_per_s(places, row.sequence_parallel);
    refuse({row.layout}, "rate",
           fmt::format("at most {} requests per second, and {} at once", rate_text(most),
                       format_count(row.fits)));
  }

  void add_beyond(const ServingRow& row, i64 places, const std::string& why_not,
                  ReplicaPrices& prices) {
    if (row.layout.devices() <= options_.survive) return;
    for (const ServingRow& priced : priced_rows(row, std::numeric_limits<i64>::max(), prices)) {
      if (priced.service.running <= places) continue;
      const i64 running = std::min(priced.concurrency, row.layout.dp * priced.service.running);
      const std::string reason = why_not.empty()
                                     ? fmt::format("caches hold {} of {}", format_count(row.fits),
                                                   plural(running, "sequence"))
                                     : why_not;
      found_.beyond.push_back({priced, reason});
    }
  }

  /// Sets the cost of the move to every layout that has rows.
  void add_moves() {
    std::map<i64, std::optional<LayoutMove>> moves;  // layouts differ in dp alone
    for (ServingRow& row : found_.rows) {
      const auto [found, is_new] = moves.try_emplace(row.layout.dp);
      if (is_new) found->second = move_to(row.layout);
      row.move = found->second;
    }
  }

  /// Returns nullopt for a layout that has a place for the weights when they are cast, and none for
  /// those that are stored.
  std::optional<LayoutMove> move_to(const ServingLayout& layout) {
    const ServedModel& from = *moved_->model;
    mapping::Resolution to;
    try {
      to = from.resolve(layout);
    } catch (const Error& error) {
      if (&from == &model_ || constraint_of(error) == nullptr) throw;
      found_.no_move = error.what();
      return std::nullopt;
    }
    const plan::ReshardPlan plan =
        plan_move(from.source().tensors, moved_->start, to, options_.plan);
    LayoutMove move{plan.bytes_total, plan.bytes_moved, plan.bytes_kept, {}, plan.peak_bytes};
    if (plan.renumbering) move.renumbered = plan.renumbering->bytes_moved;
    const plan::ReshardTime time =
        plan::time_of(plan, *options_.plan.hardware, options_.plan.node_size);
    move.us = time.network_us.value_or(0);
    return move;
  }

  const SearchOptions& options_;
  const ServedModel& model_;
  const std::optional<MovedWeights>& moved_;
  PricedLayouts found_;
};

}  // namespace

std::vector<std::string> kv_dtypes_of(const SearchOptions& options) {
  return options.kv_dtypes.empty() ? std::vector<std::string>{""} : options.kv_dtypes;
}

PricedLayouts price_layouts(const SearchOptions& options, const ServedModel& model,
                            const std::optional<MovedWeights>& moved,
                            const std::vector<ServingLayout>& layouts) {
  return ReplicaSearch(options, model, moved).run(layouts);
}

}  // namespace shardtool::api

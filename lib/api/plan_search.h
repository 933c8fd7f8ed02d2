#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/plan.h"
#include "lib/plan/offer.h"
#include "lib/plan/service.h"

namespace shardtool::api {

/// A layout of a serving system: `dp` replicas, each on pp x ep x tp devices.
struct ServingLayout {
  i64 dp = 1;  ///< replicas of the model, each with its share of the clients
  i64 pp = 1;  ///< pipeline stages
  i64 ep = 1;  ///< groups with own sequences, over which experts are distributed (attention dp)
  i64 tp = 1;
  bool expert_parallel = false;  ///< whole experts over ep and tp; else each is cut over tp

  i64 replica() const { return pp * ep * tp; }
  i64 devices() const { return dp * replica(); }
  bool operator==(const ServingLayout&) const = default;
};
/// "dp=2 tp=4", "ep=8 tp=1 expert-parallel"; axes of size 1 are left out, but tp.
std::string to_string(const ServingLayout& layout);

/// Sizes that a search must keep; absent: any.
struct PinnedSizes {
  std::optional<i64> pp;
  std::optional<i64> ep;
  std::optional<i64> tp;
  bool expert_parallel = false;  ///< true: only layouts with whole experts
};

/// A checkpoint as a search places it: as it is stored, or as `split --dtype` writes it.
struct SearchedModel {
  std::string source;
  std::optional<Dtype> dtype = {};  ///< of all floats, with quantised weights unpacked to it

  bool operator==(const SearchedModel&) const = default;
};

struct SearchOptions {
  /// Each of `sources` is a checkpoint of the same model, for example another quantisation. Uses
  /// the mapping, graph, device, hardware and sequence_parallel; hardware must be set.
  PlanOptions plan;
  std::vector<Dtype> dtypes;  ///< to which the sources may be cast: bf16, f16, f32
  PinnedSizes pinned;
  std::vector<i64> devices;      ///< numbers of devices to choose from
  std::vector<i64> concurrency;  ///< numbers of clients to choose from
  /// Requests per second to the whole service, instead of `concurrency`: an open load. A row then
  /// has the fewest sequences of a replica that answer its share (plan::running_at).
  std::optional<double> request_rate;
  i64 prompt_len = 1;                  ///< tokens
  double prefix_hit = 0;               ///< share of a prompt's tokens that the cache has, below 1
  i64 answer_len = 1;                  ///< tokens
  std::vector<std::string> kv_dtypes;  ///< to choose from; empty: the model's own
  plan::Objective objective = plan::Objective::kThroughput;
  plan::Limits limits;
  /// Today's layout: an output folder, or a file of `plan -o`. Rows then have the cost of a move.
  std::optional<std::string> from;
  /// Devices that may be lost: on those left some layout of the space must hold the load.
  i64 survive = 0;

  /// Every source as it is stored, followed by itself in each of `dtypes`.
  std::vector<SearchedModel> models() const;
  /// Tokens of a prompt that the cache has (api::cached_tokens).
  i64 cached_tokens() const { return api::cached_tokens(prefix_hit, prompt_len); }
};

/// The move of the weights from today's layout to another, directly between devices. Weights that
/// are cast move as today's layout holds them, and each device casts its own. Caches do not move.
/// Bytes are sums over the devices of the new layout, as in plan::ReshardPlan.
struct LayoutMove {
  i64 bytes_total = 0;
  i64 bytes_moved = 0;
  i64 bytes_kept = 0;
  std::optional<i64> renumbered;  ///< bytes moved if the new ranks take the best devices
  i64 peak_bytes = 0;             ///< of the busiest device: old and new weights during the move
  double us = 0;                  ///< at least, of the busiest device (plan::time_of)
};

/// Time of an answer by its cause, in microseconds.
struct AnswerParts {
  double compute = 0;
  double memory = 0;  ///< weights and cache
  double collectives = 0;
  double launches = 0;
  double host = 0;     ///< the engine's own time
  double waiting = 0;  ///< for turns and for a place in the cache
};

/// A part of a time: its field in documents, its words for people, and the member that has it.
template <class Parts>
struct TimePart {
  const char* field;
  const char* words;
  double Parts::*member;
};
/// All parts of an answer's time, in the order of reports.
inline constexpr TimePart<AnswerParts> kAnswerParts[] = {
    {"compute_ms", "compute", &AnswerParts::compute},
    {"memory_ms", "reading weights and cache", &AnswerParts::memory},
    {"collectives_ms", "collectives", &AnswerParts::collectives},
    {"launches_ms", "kernel launches", &AnswerParts::launches},
    {"host_ms", "the engine's own time", &AnswerParts::host},
    {"waiting_ms", "waiting for a turn", &AnswerParts::waiting}};

/// A layout with a number of clients.
struct ServingRow {
  SearchedModel model;
  ServingLayout layout;
  std::string kv_dtype;  ///< empty: the model's own
  bool sequence_parallel = false;
  i64 concurrency = 1;    ///< clients; with a request rate, sequences of all replicas together
  i64 weights = 0;        ///< bytes of the fullest device
  i64 total = 0;          ///< bytes of the fullest device with one sequence
  i64 per_sequence = 0;   ///< bytes of one sequence on the fullest device
  i64 fits = 0;           ///< sequences that all replicas hold, in a step of all of them, too
  plan::Service service;  ///< of one replica
  plan::Offer offer;
  AnswerParts parts;
  /// Devices of a replica, divided among its clients, or its requests on average: an answer's time
  /// on a device per its time.
  double devices_per_client = 0;
  std::optional<LayoutMove> move;  ///< from today's layout, if it has the tensors
  /// Layout that holds the load when SearchOptions::survive devices are lost; set if these are not
  /// 0.
  std::optional<ServingLayout> fallback;

  /// Sequences that a replica runs at once if these are fewer than wait and have places, as with
  /// max_num_seqs of an engine; nullopt if all do.
  std::optional<i64> cap() const {
    const i64 all = std::min(ceil_div(concurrency, layout.dp), fits / layout.dp);
    return service.running < all ? std::optional(service.running) : std::nullopt;
  }
};

/// A layout that cannot serve.
struct RefusedLayout {
  SearchedModel model;
  ServingLayout layout;
  std::string constraint;  ///< "cut", "memory", "survival", "clients", "rate" or "model"
  std::string reason;
};

/// Reason for which a layout lost against the optimum.
struct Loss {
  size_t row = 0;
  double by = 0;       ///< fraction of the optimum's value
  std::string reason;  ///< words of the part that grew most (kAnswerParts); of itself: none
};

/// A limit or the memory that keeps a better layout from being chosen.
struct Binding {
  std::string constraint;     ///< "ttft", "tpot", "price", "memory"
  std::optional<size_t> row;  ///< the best row that a limit excludes; memory: none
  std::string layout;
  double gain = 0;  ///< by which its value is better, as a fraction; 0: there is no optimum
  std::string reason;
};

struct SearchReport {
  std::vector<ServingRow> rows;        ///< all priced ones
  std::vector<RefusedLayout> refused;  ///< each layout once
  std::optional<size_t> optimum;       ///< index into rows; nullopt: nothing keeps the limits
  std::optional<size_t> runner_up;     ///< best row with another layout
  double value = 0;                    ///< of the optimum (plan::value_of)
  /// Value that no layout can exceed: all devices share the work evenly and send nothing.
  double bound = 0;
  std::vector<Loss> losses;  ///< the best row of every other layout on as many devices
  std::vector<Binding> bindings;
  std::vector<Loss> front;  ///< rows of the Pareto front (plan::pareto_front)
  std::vector<std::string> warnings;
  std::string emitted;  ///< the optimum for the program of PlanOptions::emit
};

/// Returns a report of the rows that its fields name, at most `most` of the losses, with their
/// indices in it.
SearchReport with_named_rows(const SearchReport& report, size_t most);

/// Prices every layout of the space and returns the best; see plan::service_of and model::price.
/// Weights and caches are exact, from headers. A layout whose cut `split` refuses, that has more
/// pipeline stages than the model has layers, or that does not fit, is in `refused` with the
/// reason. Where the cache has fewer places than there are clients, the others wait. Further rows
/// run fewer sequences at once, where this can be best: the most that keep the limit of TPOT, if
/// all break it, and fewer that fill groups and stages evenly, if these serve more tokens. No other
/// number is better for any objective but kUser, as long as a step takes no less time with more
/// sequences. Under kUser one at a time would be best, whatever the others wait, so that all
/// clients that have places run. A layout that cannot serve the rate of an open load is refused
/// with the greatest one that it can. A source that cannot be cast to one of `dtypes` is left out
/// in that type with a warning.
///
/// Throws the errors of opening a checkpoint, and kUsage for an impossible
/// load or budget, hardware that is not set, a model that has no price, sources that are not the
/// same model, sizes that no layout has, and a layout to move from that has the tensors of no
/// source.
SearchReport search_layouts(const SearchOptions& options);

}  // namespace shardtool::api

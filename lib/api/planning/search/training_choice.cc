#include "lib/api/planning/search/training_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace shardtool::api {
namespace {

/// Returns the part of a step's device time that grew most from the optimum to the loser, in words.
std::string grown_part(const TrainingRow& best, const TrainingRow& loser) {
  const auto growth = [&](const auto& part) {
    const auto of = [&](const TrainingRow& row) {
      return row.stages[row.slowest].parts.*part.member *
             static_cast<double>(row.way.layout.devices());
    };
    return of(loser) - of(best);
  };
  return std::ranges::max_element(kStepParts, {}, growth)->words;
}

}  // namespace

std::string to_string(const TrainingWay& way) {
  std::string text = to_string(way.layout);
  if (way.virtual_stages > 1) text += fmt::format(" virtual-stages={}", way.virtual_stages);
  if (way.layout.dp * way.layout.ep > 1) text += fmt::format(" zero={}", way.zero_stage);
  if (way.micro_batch > 1) text += fmt::format(" micro-batch={}", way.micro_batch);
  return way.sequence_parallel ? text + " sequence-parallel" : text;
}

double TrainingRow::tokens_per_s_per_device() const {
  return tokens_per_s / static_cast<double>(way.layout.devices());
}

void choose(TrainSearchReport& report) {
  std::vector<size_t> order(report.rows.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](size_t i) {
    const TrainingRow& row = report.rows[i];
    return std::tuple(-row.tokens_per_s_per_device(), row.way.layout.devices(),
                      row.stages[row.fullest].total, i);
  };
  std::ranges::sort(order, {}, key);
  if (order.empty()) return;
  report.optimum = order.front();
  const TrainingRow& best = report.rows[order.front()];
  report.value = best.tokens_per_s_per_device();
  if (order.size() > 1) report.runner_up = order[1];
  std::vector<ServingLayout> seen{best.way.layout};
  for (const size_t i : order) {
    if (i == *report.optimum) continue;
    const TrainingRow& row = report.rows[i];
    const bool is_known = std::ranges::find(seen, row.way.layout) != seen.end();
    if (is_known && i != report.runner_up) continue;
    seen.push_back(row.way.layout);
    report.losses.push_back(
        {i, 1 - row.tokens_per_s_per_device() / report.value, grown_part(best, row)});
  }
}

std::vector<TrainingRow> front_of(const std::vector<std::optional<TrainingRow>>& under) {
  std::vector<TrainingRow> front;
  for (const std::optional<TrainingRow>& row : under) {
    if (!row) continue;
    const bool is_faster =
        front.empty() || row->tokens_per_s_per_device() > front.back().tokens_per_s_per_device();
    if (is_faster) front.push_back(*row);
  }
  return front;
}

TrainSearchReport with_named_rows(const TrainSearchReport& report, size_t most) {
  TrainSearchReport named = report;
  named.rows.clear();
  named.losses.resize(std::min(most, named.losses.size()));
  std::map<size_t, size_t> moved;
  const auto move = [&](size_t& row) {
    const auto [found, is_new] = moved.try_emplace(row, named.rows.size());
    if (is_new) named.rows.push_back(report.rows[row]);
    row = found->second;
  };
  if (named.optimum) move(*named.optimum);
  if (named.runner_up) move(*named.runner_up);
  for (TrainingLoss& loss : named.losses) move(loss.row);
  return named;
}

}  // namespace shardtool::api

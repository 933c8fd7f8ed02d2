#include "tests/golden/tables.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>

#include "lib/base/json_reader.h"

namespace shardtool::golden {
namespace {

/// Reads tables of values by their function.
class TableReader {
 public:
  explicit TableReader(std::string_view text)
      : in_(text, {"functions.json", ErrorCode::kConfig}, 16) {}

  FunctionTables read() {
    FunctionTables all;
    in_.object(
        {{"transformers", into(all.transformers)},
         {"activations", [&] { activations(all.activations); }},
         {"gpt_oss_glu", [&] { pairs(all.gpt_oss_glu); }},
         {"routers", [&] { each([&] { all.routers.push_back(router()); }); }},
         {"rotations", [&] { each([&] { all.rotations.push_back(rotation()); }); }},
         {"position_buckets", [&] { each([&] { all.position_buckets.push_back(buckets()); }); }},
         {"signed_buckets", [&] { each([&] { all.signed_buckets.push_back(buckets()); }); }}});
    in_.finish();
    return all;
  }

 private:
  using Read = std::function<void()>;

  void each(const Read& element) {
    in_.begin_array();
    while (in_.next_element()) element();
  }
  Read into(std::string& value) {
    return [this, &value] { value = in_.string(); };
  }
  Read into(double& value) {
    return [this, &value] { value = in_.number(); };
  }
  Read into(i64& value) {
    return [this, &value] { value = in_.integer(); };
  }
  Read into(bool& value) {
    return [this, &value] { value = in_.boolean(); };
  }
  Read into(std::vector<double>& list) {
    return [this, &list] { each([&] { list.push_back(in_.number()); }); };
  }
  Read into(std::vector<i64>& list) {
    return [this, &list] { each([&] { list.push_back(in_.integer()); }); };
  }

  void activations(ActivationTable& table) {
    in_.object({{"x", into(table.x)}, {"y", [&] {
                                         in_.begin_object();
                                         for (std::string name; in_.next_key(name);)
                                           into(table.y[name])();
                                       }}});
  }
  void pairs(PairTable& table) {
    in_.object({{"gate", into(table.gate)}, {"up", into(table.up)}, {"out", into(table.out)}});
  }
  RouterTable router() {
    RouterTable table;
    in_.object({{"kind", into(table.kind)},
                {"experts", into(table.experts)},
                {"top_k", into(table.top_k)},
                {"renormalise", into(table.renormalise)},
                {"scale", into(table.scale)},
                {"groups", into(table.groups)},
                {"top_groups", into(table.top_groups)},
                {"least_sum", into(table.least_sum)},
                {"jitter", into(table.jitter)},
                {"correction", into(table.correction)},
                {"scores", into(table.scores)},
                {"chosen", into(table.chosen)},
                {"gates", into(table.gates)}});
    return table;
  }
  RotationTable rotation() {
    RotationTable table;
    in_.object({{"name", into(table.name)},
                {"config", [&] { table.config = std::string(in_.raw()); }},
                {"dims", into(table.dims)},
                {"theta", into(table.theta)},
                {"length", into(table.length)},
                {"inverse", into(table.inverse)},
                {"attention_factor", into(table.attention_factor)},
                {"score_factor", into(table.score_factor)}});
    return table;
  }

  BucketTable buckets() {
    BucketTable table;
    in_.object({{"buckets", into(table.buckets)},
                {"most_distance", into(table.most_distance)},
                {"two_sided", into(table.two_sided)},
                {"first", into(table.first)},
                {"of", into(table.of)}});
    return table;
  }

  JsonReader in_;
};

double largest(const std::vector<double>& found, const std::vector<double>& expected,
               double least_unit) {
  if (found.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double most = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double unit = std::max(least_unit, std::abs(expected[i]));
    most = std::max(most, std::abs(found[i] - expected[i]) / unit);
    if (std::isnan(found[i])) return std::numeric_limits<double>::infinity();
  }
  return most;
}

}  // namespace

const FunctionTables& function_tables() {
  static const FunctionTables tables = [] {
    std::ostringstream text;
    text << std::ifstream(SHARDTOOL_SOURCE_DIR "/tests/golden/functions.json").rdbuf();
    const std::string json = text.str();
    return TableReader(json).read();
  }();
  return tables;
}

double distance(const std::vector<double>& found, const std::vector<double>& expected) {
  return largest(found, expected, 1);
}

double relative_distance(const std::vector<double>& found, const std::vector<double>& expected) {
  return largest(found, expected, 0);
}

}  // namespace shardtool::golden

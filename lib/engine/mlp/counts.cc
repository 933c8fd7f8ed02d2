#include "shardtool/engine/mlp/counts.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

namespace shardtool::engine::mlp {

Counts operator-(const Counts& after, const Counts& before) {
  return {after.all_gather - before.all_gather, after.all_reduce - before.all_reduce,
          after.reduce_scatter - before.reduce_scatter, after.all_to_all - before.all_to_all,
          after.send - before.send};
}

Counts& operator+=(Counts& sum, const Counts& counts) {
  return sum = sum - (Counts{} - counts);
}

std::string to_string(const Counts& counts) {
  const std::array<std::pair<i64, std::string_view>, 5> kinds{{
      {counts.all_gather, "all_gather"},
      {counts.all_reduce, "all_reduce"},
      {counts.reduce_scatter, "reduce_scatter"},
      {counts.all_to_all, "all_to_all"},
      {counts.send, "send"},
  }};
  std::string text;
  for (const auto& [calls, name] : kinds) {
    if (calls != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", calls, name);
  }
  return text.empty() ? "none" : text;
}

}  // namespace shardtool::engine::mlp

#include "lib/mapping/resolve/tensor_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "lib/base/error.h"

namespace shardtool::mapping {
namespace {

/// Returns for each of the indices that some rank holds the first of them that the same ranks hold.
std::map<i64, i64> first_with_same_ranks(const std::set<i64>& indices, const layout::AxisExpr& expr,
                                         const mesh::Mesh& mesh) {
  std::map<i64, std::vector<i64>> ranks_of;
  for (i64 rank = 0; rank < mesh.size(); ++rank) {
    const index::AxisMap map = layout::evaluate(expr, mesh, rank);
    for (const index::Piece& piece : map.pieces()) {
      const auto end = indices.lower_bound(piece.global_end());
      for (auto at = indices.lower_bound(piece.global); at != end; ++at)
        ranks_of[*at].push_back(rank);
    }
  }
  std::map<std::vector<i64>, i64> first;
  std::map<i64, i64> homes;
  for (auto& [index, ranks] : ranks_of)
    homes[index] = first.emplace(std::move(ranks), index).first->second;
  return homes;
}

}  // namespace

void TensorNumbers::read(const Matches& matches) {
  const auto tensors = matches.tensors();
  of_.resize(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (const IndexNumber& number : matches.numbers_of(i)) {
      if (!axes_.over(*number.axis).empty()) of_[i].push_back(number);
    }
  }
  numbers_.check_complete(axes_);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Assignment& assigned = matches.assigned()[i];
    if (assigned.kind != Assignment::Kind::kRule) continue;
    place_at(i, *matches.rules().rules()[assigned.match.rule].rule, tensors[i].name);
  }
}

/// Adds the numbers of the rule's "at", once the sizes of the axes are known.
void TensorNumbers::place_at(size_t tensor, const Rule& rule, const std::string& name) {
  for (const auto& [axis, numbers] : rule.at) {
    axes_.require(axis, rule.place);
    const i64 size = numbers_.size(axis, axes_);
    std::vector<i64> indices;
    for (const i64 number : numbers) {
      const i64 index = number < 0 ? number + size : number;
      if (index >= 0 && index < size) {
        indices.push_back(index);
        continue;
      }
      throw Error(
          ErrorCode::kShapeMismatch,
          fmt::format("\"at\" is {} for axis '{}', which has {} indices", number, axis, size))
          .at(rule.place)
          .tensor(name)
          .help(
              fmt::format("correct it, or say in \"axes\" how many there are: \"{}\": {{\"size\": "
                          "..}}, such as \"config.num_hidden_layers\" for layers",
                          axis));
    }
    if (axes_.over(axis).empty()) continue;
    of_[tensor].push_back({&axis, indices.front(), {indices.begin() + 1, indices.end()}});
  }
}

std::vector<layout::IndexAxis> TensorNumbers::axes_of(size_t tensor, const Rule& rule,
                                                      std::vector<UnitCut>& units) {
  std::vector<layout::IndexAxis> found;
  for (const auto& [name, number, others] : of_[tensor]) {
    const std::string& axis = *name;
    const i64 size = numbers_.size(axis, axes_);
    if (number >= size) {
      throw Error(ErrorCode::kShapeMismatch,
                  fmt::format("index {} is outside axis '{}' of size {}", number, axis, size))
          .note("config", axes_.size_origin(axis))
          .help("take config.json and the tensors from one model, or correct the axis' \"size\"");
    }
    if (!axes_.is_cut(axis, rule)) continue;
    const UnitCut& cut = axes_.cut(axis, size);
    found.push_back({axis, cut.units, number, others});
    units.push_back(cut);
  }
  return found;
}

std::vector<i64> TensorNumbers::homes_of(size_t tensor) {
  std::vector<i64> homes;
  for (const auto& [axis, number, others] : of_[tensor]) {
    auto found = homes_.find(*axis);
    if (found == homes_.end()) found = homes_.emplace(*axis, homes_on(*axis)).first;
    const auto add = [&all = found->second, &homes](i64 index) {
      const auto home = all.find(index);
      homes.push_back(home == all.end() ? index : home->second);
    };
    add(number);
    std::ranges::for_each(others, add);
  }
  return homes;
}

/// Returns the homes of the numbers that tensors have on an index axis; empty, so that each number
/// is its own home, if the axis cannot be cut: `axes_of` throws that error, for the tensor.
std::map<i64, i64> TensorNumbers::homes_on(const std::string& axis) {
  std::set<i64> indices;
  for (const auto& numbers : of_) {
    for (const auto& [name, number, others] : numbers) {
      if (*name != axis) continue;
      indices.insert(number);
      indices.insert(others.begin(), others.end());
    }
  }
  try {
    return first_with_same_ranks(indices, axes_.cut(axis, numbers_.size(axis, axes_)).units,
                                 axes_.mesh());
  } catch (const Error&) {
    return {};
  }
}

}  // namespace shardtool::mapping

#include "lib/api/transfer/file_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::api {
namespace {

using Kind = mapping::Content::Kind;

/// Builds the entries of one rank after the other.
class Entries {
 public:
  Entries(const LogicalCheckpoint& source, const TargetLayout& target)
      : source_(source), target_(target), target_of_(source.tensors.size()) {
    for (size_t t = 0; t < target.tensors.size(); ++t) target_of_[target.tensors[t].source] = t;
  }

  std::vector<FileEntry> of_rank(i64 rank) {
    std::vector<FileEntry> entries;
    for (size_t o = 0; o < target_.output->size(); ++o) {
      const mapping::OutputTensor& output = (*target_.output)[o];
      const bool is_elsewhere =
          !output.ranks.empty() && !std::ranges::binary_search(output.ranks, rank);
      if (is_elsewhere) continue;
      FileEntry entry{o, Dtype::kF32, {}, {}};
      const auto shape = add(output, output.content, rank, entry);
      if (!shape) continue;
      if (output.constant) {
        entry = {o, output.constant->dtype, output.constant->shape, {}};
      } else {
        entry.shape = *shape;
      }
      entries.push_back(std::move(entry));
    }
    return entries;
  }

 private:
  /// Adds the shards of the content that the rank holds. Returns the shape of their bytes, or
  /// nullopt if it holds none.
  std::optional<Shape> add(const mapping::OutputTensor& output, const mapping::Content& content,
                           i64 rank, FileEntry& entry) {
    if (content.kind == Kind::kTensor) {
      auto shape = add_shard(content.tensor, rank, entry);
      if (shape && content.joined > 0) join_last(*shape, content.joined);
      return shape;
    }
    std::vector<Shape> shapes;
    for (const mapping::Content& part : content.parts) {
      if (auto shape = add(output, part, rank, entry)) shapes.push_back(*std::move(shape));
    }
    if (shapes.empty()) return std::nullopt;
    if (content.kind == Kind::kStack) return stacked(output, rank, shapes);
    if (shapes.size() != content.parts.size()) {
      throw unequal(output, rank)
          .note("found",
                fmt::format("{} of {}", shapes.size(), plural(std::ssize(content.parts), "part")))
          .note("expected", "all tensors of it on the same ranks");
    }
    return concatenated(output, rank, std::move(shapes));
  }

  std::optional<Shape> add_shard(size_t tensor, i64 rank, FileEntry& entry) {
    const auto& t = target_of_[tensor];
    if (!t) return std::nullopt;
    const std::vector<i64>& ranks = target_.tensors[*t].ranks;
    const auto holder = std::lower_bound(ranks.begin(), ranks.end(), rank);
    if (holder == ranks.end() || *holder != rank) return std::nullopt;
    const auto h = static_cast<std::int32_t>(holder - ranks.begin());
    entry.shards.push_back({static_cast<std::int32_t>(*t), h});
    entry.dtype = source_.tensors[tensor].spec.dtype;
    return target_.tensors[*t].holders->local_shape(h);
  }

  /// Makes one axis of the last ones; of a scalar, one element.
  static void join_last(Shape& shape, size_t axes) {
    if (shape.empty()) shape = {1};
    for (; axes > 1; --axes) {
      const i64 inner = shape.back();
      shape.pop_back();
      shape.back() *= inner;
    }
  }

  Shape stacked(const mapping::OutputTensor& output, i64 rank,
                const std::vector<Shape>& shapes) const {
    for (const Shape& shape : shapes) {
      if (shape != shapes.front()) throw differ(output, rank, shapes.front(), shape);
    }
    Shape all{std::ssize(shapes)};
    all.insert(all.end(), shapes.front().begin(), shapes.front().end());
    return all;
  }

  Shape concatenated(const mapping::OutputTensor& output, i64 rank,
                     std::vector<Shape> shapes) const {
    Shape all;
    for (Shape& shape : shapes) {
      if (shape.empty()) shape = {1};
      if (all.empty()) {
        all = std::move(shape);
        continue;
      }
      if (!std::equal(all.begin() + 1, all.end(), shape.begin() + 1, shape.end())) {
        throw differ(output, rank, all, shape);
      }
      all.front() += shape.front();
    }
    return all;
  }

  static Error unequal(const mapping::OutputTensor& output, i64 rank) {
    return Error(
               ErrorCode::kStrategy,
               fmt::format("the tensors of an output tensor are cut differently on rank {}", rank))
        .tensor(quote_for_message(output.name));
  }
  static Error differ(const mapping::OutputTensor& output, i64 rank, const Shape& first,
                      const Shape& other) {
    return unequal(output, rank).note("found", to_string(other)).note("beside", to_string(first));
  }

  const LogicalCheckpoint& source_;
  const TargetLayout& target_;
  std::vector<std::optional<size_t>> target_of_;  ///< by source tensor
};

}  // namespace

std::vector<std::vector<FileEntry>> file_entries(const LogicalCheckpoint& source,
                                                 const TargetLayout& target) {
  Entries entries(source, target);
  std::vector<std::vector<FileEntry>> all;
  for (const i64 rank : target.ranks) all.push_back(entries.of_rank(rank));
  return all;
}

format::ConstantRecord constant_record(const mapping::OutputTensor& output) {
  return {output.name, output.constant->dtype, output.constant->shape, output.constant->value};
}

}  // namespace shardtool::api

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <unordered_map>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/chunks.h"
#include "lib/format/names.h"
#include "lib/index/coverage.h"
#include "lib/index/holder_set_pool.h"

namespace shardtool::format {
namespace {

using index::AxisMap;
using index::HolderSet;
using index::Region;

enum class Cover { kPartial, kDisjoint, kOverlapping };

class Grouping {
 public:
  Grouping(Checkpoint& checkpoint, const ProblemSink& report)
      : checkpoint_(checkpoint), report_(report), is_dropped_(checkpoint.tensors.size(), false) {}

  void run() {
    std::vector<size_t> order(checkpoint_.tensors.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto name = [this](size_t t) -> const std::string& {
      return checkpoint_.tensors[t].name;
    };
    std::ranges::stable_sort(order, {}, name);
    for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      while (end < order.size() && name(order[end]) == name(order[begin])) ++end;
      add(std::span(order).subspan(begin, end - begin));
    }
    warn_of_overlaps();
    if (std::ranges::find(is_dropped_, true) != is_dropped_.end()) drop();
  }

 private:
  const StoredTensor& stored(size_t t) const { return checkpoint_.tensors[t]; }

  Error malformed(const std::string& message, const std::string& tensor) const {
    return Error(ErrorCode::kMalformed, message)
        .at({checkpoint_.path, 0, 0, ""})
        .tensor(quote_for_message(tensor));
  }

  /// Adds the tensor of these parts, or reports why it cannot be joined and drops them.
  void add(std::span<const size_t> parts) {
    try {
      if (add_whole(parts)) return;
    } catch (const Error& error) {
      report_({ProblemKind::kChunksInvalid, error, ""});
    }
    for (const size_t t : parts) is_dropped_[t] = true;
  }

  /// Returns false, after a report, if the parts do not cover the tensor.
  bool add_whole(std::span<const size_t> parts) {
    const StoredTensor& first = stored(parts.front());
    ChunkedTensor tensor{first.name, first.dtype, whole_shape(parts), nullptr, {}};
    std::vector<Region> regions;
    for (const size_t t : parts) {
      if (stored(t).dtype != first.dtype) {
        throw malformed("the chunks of a tensor have two dtypes", first.name);
      }
      regions.push_back(region_of(stored(t), tensor.shape));
      tensor.stored.push_back(t);
    }
    tensor.holders = pool_.of(tensor.shape, regions);
    const auto [known, is_new] = covers_.try_emplace(tensor.holders.get());
    if (is_new) known->second = cover_of(*tensor.holders);
    if (known->second == Cover::kPartial) {
      report_partial(first.name, std::ssize(parts), tensor.shape);
      return false;
    }
    if (known->second == Cover::kOverlapping) overlapping_.push_back(tensor.name);
    checkpoint_.chunked.push_back(std::move(tensor));
    return true;
  }

  /// Says nothing if a file is missing or broken: that is the reason, and was reported.
  void report_partial(const std::string& name, i64 parts, const Shape& shape) const {
    const bool has_all_files = std::ranges::all_of(
        checkpoint_.files, [](const SourceFile& file) { return file.state == FileState::kRead; });
    if (!has_all_files) return;
    report_({ProblemKind::kChunksIncomplete,
             malformed("the chunks do not cover the tensor", name)
                 .note("found", plural(parts, "chunk"))
                 .note("expected", fmt::format("all elements of {}", to_string(shape)))
                 .help("a file of some rank is missing: copy the whole folder"),
             ""});
  }

  /// Chunks that are no replicas and cover a tensor are disjoint if their sizes add up to its size.
  static Cover cover_of(const HolderSet& holders) {
    if (!index::covers(holders)) return Cover::kPartial;
    i64 elements = 0;
    for (const int holder : holders.firsts()) {
      const auto size = element_count(holders.local_shape(holder));
      const auto sum = size ? checked_add(elements, *size) : std::nullopt;
      if (!sum) return Cover::kOverlapping;
      elements = *sum;
    }
    return elements == element_count(holders.shape()) ? Cover::kDisjoint : Cover::kOverlapping;
  }

  void warn_of_overlaps() {
    if (overlapping_.empty()) return;
    checkpoint_.warnings.push_back(
        {fmt::format("chunks of {} overlap: {}", plural(std::ssize(overlapping_), "tensor"),
                     list_for_message(overlapping_)),
         "", Oddity::kOverlap});
  }

  /// Removes the parts of tensors that were not joined.
  void drop() {
    std::vector<size_t> kept(is_dropped_.size());
    std::vector<StoredTensor> tensors;
    for (size_t t = 0; t < is_dropped_.size(); ++t) {
      kept[t] = tensors.size();
      if (!is_dropped_[t]) tensors.push_back(std::move(checkpoint_.tensors[t]));
    }
    checkpoint_.tensors = std::move(tensors);
    for (ChunkedTensor& tensor : checkpoint_.chunked) {
      for (size_t& t : tensor.stored) t = kept[t];
    }
  }

  /// The shape that the parts name, or the smallest one that holds them.
  Shape whole_shape(std::span<const size_t> parts) const {
    Shape shape = stored(parts.front()).shape;
    for (const size_t t : parts) {
      const StoredTensor& one = stored(t);
      if (one.part && one.part->whole) return *one.part->whole;
      const size_t rank = shape.size();
      const bool fits = one.shape.size() == rank && (!one.part || one.part->begin.size() == rank);
      if (!fits) throw malformed("the chunks of a tensor differ in their number of axes", one.name);
      for (size_t axis = 0; axis < rank; ++axis) {
        const i64 begin = one.part ? one.part->begin[axis] : 0;
        const auto end = checked_add(begin, one.shape[axis]);
        if (!end || begin < 0) throw malformed("a chunk begins at no valid index", one.name);
        shape[axis] = std::max(shape[axis], *end);
      }
    }
    if (!element_count(shape))
      throw malformed("a tensor has too many elements", stored(parts.front()).name);
    return shape;
  }

  Region region_of(const StoredTensor& part, const Shape& whole) const {
    if (part.shape.size() != whole.size()) {
      throw malformed("the chunks of a tensor differ in their number of axes", part.name);
    }
    Region region;
    for (size_t axis = 0; axis < whole.size(); ++axis) {
      const i64 begin = part.part ? part.part->begin[axis] : 0;
      if (begin < 0 || begin > whole[axis] - part.shape[axis]) {
        throw malformed("a chunk leaves its tensor", part.name)
            .note("chunk", fmt::format("{} from {} on", to_string(part.shape), begin))
            .note("tensor", to_string(whole));
      }
      region.push_back(AxisMap::slice(whole[axis], {begin, begin + part.shape[axis]}));
    }
    return region;
  }

  Checkpoint& checkpoint_;
  const ProblemSink& report_;
  index::HolderSetPool pool_;
  std::unordered_map<const HolderSet*, Cover> covers_;
  std::vector<std::string> overlapping_;  ///< names of tensors
  std::vector<bool> is_dropped_;          ///< by number of a stored tensor
};

}  // namespace

void group_chunks(Checkpoint& checkpoint, const ProblemSink& report) {
  const bool has_parts = std::any_of(checkpoint.tensors.begin(), checkpoint.tensors.end(),
                                     [](const StoredTensor& t) { return t.part != nullptr; });
  if (has_parts) Grouping(checkpoint, report).run();
}

}  // namespace shardtool::format

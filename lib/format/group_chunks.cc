#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <unordered_map>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/chunks.h"
#include "lib/index/holder_set_pool.h"
#include "lib/index/join.h"

namespace shardtool::format {
namespace {

using index::AxisMap;
using index::HolderSet;
using index::Region;

class Grouping {
 public:
  explicit Grouping(Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

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
  }

 private:
  const StoredTensor& stored(size_t t) const { return checkpoint_.tensors[t]; }

  Error malformed(const std::string& message, const std::string& tensor) const {
    return Error(ErrorCode::kMalformed, message)
        .at({checkpoint_.path, 0, 0, ""})
        .tensor(quote_for_message(tensor));
  }

  void add(std::span<const size_t> parts) {
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
    if (is_new) known->second = index::covers(*tensor.holders);
    if (!known->second) {
      throw malformed("the chunks do not cover the tensor", first.name)
          .note("found", plural(std::ssize(parts), "chunk"))
          .note("expected", fmt::format("all elements of {}", to_string(tensor.shape)))
          .help("a file of some rank is missing: copy the whole folder");
    }
    checkpoint_.chunked.push_back(std::move(tensor));
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
  index::HolderSetPool pool_;
  std::unordered_map<const HolderSet*, bool> covers_;
};

}  // namespace

void group_chunks(Checkpoint& checkpoint) {
  const bool has_parts = std::any_of(checkpoint.tensors.begin(), checkpoint.tensors.end(),
                                     [](const StoredTensor& t) { return t.part != nullptr; });
  if (has_parts) Grouping(checkpoint).run();
}

}  // namespace shardtool::format

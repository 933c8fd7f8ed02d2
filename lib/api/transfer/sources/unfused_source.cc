#include "lib/api/transfer/sources/unfused_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/names.h"
#include "lib/index/holder_set_pool.h"

namespace shardtool::api {
namespace {

using index::AxisMap;
using index::HolderSet;
using index::Region;

class Unfusing {
 public:
  Unfusing(const LogicalCheckpoint& stored, const mapping::ReadRules& rules,
           const mapping::ModelConfig* config, const layouts::EngineLayout* layout)
      : stored_(stored), rules_(rules), config_(config), layout_(layout) {
    if (layout == nullptr) return;
    for (const std::string& glob : layout->left_out)
      left_out_.push_back(mapping::glob_filter(glob));
  }

  /// The tensors of the checkpoint, by name.
  std::vector<LogicalTensor> run(std::vector<std::string>& left_out) {
    for (const LogicalTensor& tensor : stored_.tensors) {
      const std::string& name = tensor.spec.name;
      if (const auto match = rules_.find(name, tensor.spec.shape.size())) {
        add_parts(tensor, *match);
        continue;
      }
      if (layout_ == nullptr) {
        found_.push_back(tensor);
        continue;
      }
      if (std::ranges::none_of(left_out_, [&](const auto& takes) { return takes(name); })) {
        throw no_rule(name);
      }
      left_out.push_back(name);
    }
    std::ranges::sort(found_, {}, [](const LogicalTensor& one) { return one.spec.name; });
    for (size_t i = 1; i < found_.size(); ++i) {
      if (found_[i].spec.name != found_[i - 1].spec.name) continue;
      throw Error(ErrorCode::kTensorInvalid, "two stored tensors hold one tensor of the model")
          .tensor(quote_for_message(found_[i].spec.name));
    }
    return std::move(found_);
  }

 private:
  Error no_rule(const std::string& tensor) const {
    return Error(ErrorCode::kNoRule,
                 fmt::format("the layout {} has no tensor of this name", layout_->label()))
        .tensor(quote_for_message(tensor))
        .help(fmt::format("leave out {}: in front of the path if the names are the model's own",
                          layout_->name))
        .help("FOLDER#PREFIX reads only the tensors below a prefix, such as module of NeMo");
  }

  /// Throws for a part that a rule takes for a stored tensor: outputs could not be told from
  /// checkpoints.
  void refuse_taken(const mapping::PartPlace& part, const mapping::ReadRules::Match& match,
                    size_t axes) const {
    if (!rules_.find(part.name, axes)) return;
    throw Error(ErrorCode::kTensorInvalid, "a rule of \"read\" would take a part apart again")
        .at(match.rule->place)
        .tensor(quote_for_message(part.name))
        .help("give the parts names that no rule of \"read\" matches");
  }

  static Error lacks_axis(const LogicalTensor& tensor, size_t axis) {
    return Error(ErrorCode::kShapeMismatch, "a stored tensor lacks the axis that holds its parts")
        .tensor(quote_for_message(tensor.spec.name))
        .note("found", shardtool::to_string(tensor.spec.shape))
        .note("expected", fmt::format("an axis {}", axis));
  }

  /// Number of indices of the stacked axes, which a tensor without elements may have any number of.
  static i64 matrices(const LogicalTensor& tensor, const Shape& leading) {
    constexpr i64 kMost = 1 << 20;
    const i64 count = element_count(leading).value_or(INT64_MAX);
    if (count <= kMost) return count;
    throw Error(ErrorCode::kLimit, "a stored tensor has too many tensors along its leading axes")
        .tensor(quote_for_message(tensor.spec.name))
        .note("found", shardtool::to_string(tensor.spec.shape))
        .note("expected", fmt::format("at most {}", kMost));
  }

  /// Adds the parts at every index of the stacked axes.
  void add_parts(const LogicalTensor& tensor, const mapping::ReadRules::Match& match) {
    const size_t stacked = match.rule->stacked.size();
    const size_t axis = stacked + match.rule->axis;
    const Shape& shape = tensor.spec.shape;
    const bool only_renames =
        match.rule->of.size() == 1 && !match.rule->size && !match.rule->interleaved;
    if (shape.size() <= axis && !only_renames) throw lacks_axis(tensor, axis);
    const i64 extent = shape.size() > axis ? shape[axis] : 0;
    std::vector<i64> at(stacked, 0);
    const Shape leading(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(stacked));
    for (i64 count = matrices(tensor, leading); count > 0; --count) {
      for (const mapping::PartPlace& part : mapping::parts_at(match, at, extent, config_)) {
        if (layout_ == nullptr) refuse_taken(part, match, shape.size() - stacked);
        found_.push_back(tensor_of(tensor, part, match.rule->axis, at));
      }
      for (size_t outer = stacked; outer-- > 0 && ++at[outer] == shape[outer];) at[outer] = 0;
    }
  }

  /// The part at an index of the stacked axes; `axis`, behind them, holds the parts.
  LogicalTensor tensor_of(const LogicalTensor& tensor, const mapping::PartPlace& part, size_t axis,
                          const std::vector<i64>& at) {
    const Shape& whole = tensor.spec.shape;
    Shape shape(whole.begin() + static_cast<std::ptrdiff_t>(at.size()), whole.end());
    if (axis < shape.size()) shape[axis] = part.along.global_size();
    LogicalTensor found;
    found.spec = {part.name, tensor.spec.dtype, shape};
    std::vector<Region> regions;
    for (int holder = 0; holder < tensor.side.holders->size(); ++holder) {
      const Region region = tensor.side.holders->region(holder);
      const auto skipped = skipped_bytes(tensor, region, at);
      if (!skipped) continue;
      Region inner(region.begin() + static_cast<std::ptrdiff_t>(at.size()), region.end());
      if (axis < shape.size()) {
        inner[axis] = compose(part.along, inner[axis]);
        if (inner[axis].image_size() == 0 && shape[axis] > 0) continue;
      }
      exec::Slot slot = tensor.side.slots[static_cast<size_t>(holder)];
      slot.offset += *skipped;
      regions.push_back(std::move(inner));
      found.side.slots.push_back(slot);
    }
    found.side.holders = pool_.of(shape, regions);
    found.part_of = std::make_shared<const StoredPart>(
        StoredPart{tensor.spec.name, at, at.size() + axis, part.along});
    return found;
  }

  /// Bytes of a holder before its elements at this index of the leading axes; nullopt if it has
  /// none there.
  std::optional<i64> skipped_bytes(const LogicalTensor& tensor, const Region& region,
                                   const std::vector<i64>& at) const {
    i64 number = 0;
    for (size_t axis = 0; axis < at.size(); ++axis) {
      const auto local = index::inverse(region[axis])(at[axis]);
      if (!local) return std::nullopt;
      number = number * region[axis].local_size() + *local;
    }
    Shape inner;
    for (size_t axis = at.size(); axis < region.size(); ++axis) {
      inner.push_back(region[axis].local_size());
    }
    const auto bytes = byte_size(tensor.spec.dtype, inner);
    if (bytes) return number * *bytes;
    throw Error(ErrorCode::kSubByteCut, "a stacked tensor does not begin at a whole byte")
        .tensor(quote_for_message(tensor.spec.name))
        .note("found", fmt::format("{} {}", to_string(tensor.spec.dtype),
                                   shardtool::to_string(tensor.spec.shape)));
  }

  const LogicalCheckpoint& stored_;
  const mapping::ReadRules& rules_;
  const mapping::ModelConfig* config_;
  const layouts::EngineLayout* layout_;
  std::vector<std::function<bool(std::string_view)>> left_out_;
  std::vector<LogicalTensor> found_;
  index::HolderSetPool pool_;
};

}  // namespace

void warn_of_left_out(const std::vector<std::string>& names, LogicalCheckpoint& read) {
  if (names.empty()) return;
  read.parts.front().warnings.push_back(
      {fmt::format("{} of the checkpoint {} no weights and left out: {}",
                   plural(std::ssize(names), "tensor"), names.size() == 1 ? "is" : "are",
                   format::list_for_message(names)),
       "", format::Oddity::kOtherEntry});
}

LogicalCheckpoint unfused(LogicalCheckpoint stored, const mapping::ReadRules& rules,
                          const mapping::ModelConfig* config, const layouts::EngineLayout* layout) {
  std::vector<std::string> left_out;
  stored.tensors = Unfusing(stored, rules, config, layout).run(left_out);
  if (layout == nullptr) return stored;
  std::erase_if(stored.parts.front().other_files, [layout](const std::string& name) {
    return std::ranges::find(layout->own_files, name) != layout->own_files.end();
  });
  warn_of_left_out(left_out, stored);
  return stored;
}

}  // namespace shardtool::api

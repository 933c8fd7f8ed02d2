#include "lib/api/transfer/store/copies.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "lib/store/s3/part_plan.h"

namespace shardtool::api {
namespace {

using exec::SameBytes;
using store::s3::ByteRange;

/// Shorter stretches are read: a request for each would take longer.
constexpr i64 kLeastStretch = 4 << 10;

ByteRange range_of(const SameBytes& same) {
  return {same.to.offset, same.bytes};
}

bool follows(const SameBytes& last, const SameBytes& next) {
  return last.from.file == next.from.file && last.from.offset + last.bytes == next.from.offset &&
         last.to.offset + last.bytes == next.to.offset;
}

/// Stretches of one file, joined where they follow each other on both sides.
template <class Stretches>
std::vector<SameBytes> joined(const Stretches& stretches) {
  std::vector<SameBytes> all;
  for (const auto& [same, tensor] : stretches) {
    if (!all.empty() && follows(all.back(), same)) {
      all.back().bytes += same.bytes;
    } else {
      all.push_back(same);
    }
  }
  return all;
}

/// True if the tensor has only values that are stored, in objects whose versions have ETags.
bool is_from_store(const WriteRun& run, size_t t) {
  const exec::TensorMove& move = run.moves[t];
  if (is_shifted(run.source, run.target.tensors[t])) return false;
  return std::ranges::all_of(move.from.slots, [&](const exec::Slot& slot) {
    return !run.source.files[static_cast<size_t>(slot.file)].identity.version.empty();
  });
}

}  // namespace

StoreCopies::StoreCopies(const WriteRun& run)
    : stretches_(run.plan.files.size()), is_copied_(run.moves.size()) {
  std::set<std::string_view> tied;
  for (const auto& group : run.target.tied) tied.insert(group.begin(), group.end());
  for (size_t t = 0; t < run.moves.size(); ++t) {
    if (tied.contains(run.moves[t].name) || !is_from_store(run, t)) continue;
    const auto same = exec::same_bytes(run.moves[t], kLeastStretch);
    if (!same) continue;
    for (const SameBytes& one : *same) {
      stretches_[static_cast<size_t>(one.to.file)].push_back({one, t});
    }
  }
  for (auto& stretches : stretches_) {
    std::ranges::sort(stretches, {}, [](const Stretch& one) { return one.same.to.offset; });
  }
}

std::vector<i64> StoreCopies::parts_of(size_t file, i64 bytes, i64 part_bytes) const {
  std::vector<ByteRange> copyable;
  if (!stretches_.empty()) {
    for (const SameBytes& same : joined(stretches_[file])) copyable.push_back(range_of(same));
  }
  return store::s3::plan_parts(bytes, copyable, part_bytes);
}

void StoreCopies::copy_none() {
  parts_.clear();
  is_copied_.assign(is_copied_.size(), false);
  rests_.assign(is_copied_.size(), {});
}

void StoreCopies::settle(std::span<const store::s3::PartedObject> objects) {
  copy_none();
  for (size_t o = 0; o < stretches_.size(); ++o) {
    const auto runs = joined(stretches_[o]);
    auto run = runs.begin();
    auto stretch = stretches_[o].begin();
    ByteRange range;
    for (size_t p = 0; p < objects[o].parts.size(); ++p, range.offset = range.end()) {
      range.bytes = objects[o].parts[p];
      while (run != runs.end() && range_of(*run).end() < range.end()) ++run;
      if (run == runs.end()) break;
      if (run->to.offset > range.offset || range.bytes < store::s3::kLeastPartBytes) continue;
      while (range_of(stretch->same).end() <= range.offset) ++stretch;
      exec::Slot from = run->from;
      from.offset += range.offset - run->to.offset;
      parts_.push_back({o, p, range, from, stretch->tensor});
      for (auto in = stretch; in != stretches_[o].end() && in->same.to.offset < range.end(); ++in) {
        is_copied_[in->tensor] = true;
      }
    }
  }
  for (size_t o = 0; o < stretches_.size(); ++o) {
    const auto [first, last] = std::ranges::equal_range(parts_, o, {}, &Part::object);
    note_rests(o, {first, last});
  }
}

/// Notes what of the stretches of an object is in no copied part. `parts` are the object's.
void StoreCopies::note_rests(size_t object, std::span<const Part> parts) {
  auto next = parts.begin();
  for (const auto& [same, tensor] : stretches_[object]) {
    if (!is_copied_[tensor]) continue;
    i64 at = same.to.offset;
    const i64 end = range_of(same).end();
    const SameBytes& whole = same;
    const size_t of = tensor;
    const auto add_until = [&](i64 until) {
      if (until <= at) return;
      rests_[of].push_back({{whole.from.file, whole.from.offset + at - whole.to.offset},
                            {whole.to.file, at},
                            until - at});
    };
    while (next != parts.end() && next->range.end() <= at) ++next;
    for (auto part = next; part != parts.end() && part->range.offset < end; ++part) {
      add_until(part->range.offset);
      at = part->range.end();
    }
    add_until(end);
  }
}

i64 StoreCopies::bytes() const {
  i64 bytes = 0;
  for (const Part& part : parts_) bytes += part.range.bytes;
  return bytes;
}

}  // namespace shardtool::api

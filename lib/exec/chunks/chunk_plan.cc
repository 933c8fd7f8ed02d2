#include "lib/exec/chunks/chunk_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <unordered_set>

#include "lib/base/error.h"

namespace shardtool::exec {
namespace {

using index::AxisMap;
using index::HolderJoin;
using index::HolderSet;

constexpr i64 kPage = 4096;

/// Adds a unit axis to scalars, which are streamed as vectors of one element.
std::shared_ptr<const HolderSet> with_an_axis(const std::shared_ptr<const HolderSet>& holders) {
  if (holders->rank() > 0) return holders;
  auto vector = std::make_shared<HolderSet>(Shape{1});
  for (int h = 0; h < holders->size(); ++h) vector->add(index::whole_region({1}));
  return vector;
}

/// Distinct inner extents after `axis`, in elements, one per class of holders that share them.
std::vector<i64> inner_sizes(const HolderSet& side, int axis, std::span<const int> holders) {
  std::set<std::vector<int>> picks;
  for (const int h : holders) {
    const auto pick = side.pick(h).subspan(static_cast<size_t>(axis) + 1);
    picks.insert({pick.begin(), pick.end()});
  }
  std::vector<i64> sizes;
  for (const auto& pick : picks) {
    i64 size = 1;
    for (size_t i = 0; i < pick.size(); ++i) {
      size *= side.maps(axis + 1 + static_cast<int>(i))[static_cast<size_t>(pick[i])].local_size();
    }
    sizes.push_back(size);
  }
  return sizes;
}

i64 sum(const std::vector<i64>& values) {
  return std::accumulate(values.begin(), values.end(), i64{0});
}

bool ascending(const AxisMap& map) {
  const auto pieces = map.pieces();
  return std::is_sorted(pieces.begin(), pieces.end(),
                        [](const auto& a, const auto& b) { return a.global < b.global; });
}

Error cut_inside_byte(Dtype dtype, const Shape& shape) {
  return Error(ErrorCode::kSubByteCut,
               fmt::format("a cut of {} elements ({} bits each) falls inside a byte",
                           to_string(dtype), bits(dtype)))
      .note("shape", to_string(shape))
      .help("cut an axis whose shards are whole bytes, or keep the tensor whole");
}

std::string describe(HolderJoin::Box box) {
  std::string text;
  for (const HolderJoin::Cell* cell : box) {
    text +=
        fmt::format("{}[{}, {})", text.empty() ? "" : " x ", cell->begin, cell->begin + cell->size);
  }
  return text.empty() ? "the scalar" : text;
}

}  // namespace

/// Collects the contents of one chunk, box by box.
struct ChunkPlan::Builder {
  Builder(const ChunkPlan& p, const Position& position) : plan(p), at(position) {
    chunk.sequence = at.sequence;
    chunk.rows = at.rows;
  }

  const ChunkPlan& plan;
  const Position& at;
  Chunk chunk;
  std::map<int, int> input_of_holder;
  std::map<std::vector<int>, int> output_of_pick;
  std::unordered_set<int> targeted;
  std::vector<i64> copied_bytes;  ///< per output

  size_t axis() const { return static_cast<size_t>(plan.axis_); }

  Shape inner_extents(const HolderSet& side, int holder) const {
    Shape extents;
    const auto pick = side.pick(holder);
    for (size_t a = axis() + 1; a < pick.size(); ++a) {
      extents.push_back(side.maps(static_cast<int>(a))[static_cast<size_t>(pick[a])].local_size());
    }
    return extents;
  }

  i64 to_bytes(i64 elements, int element_bits) const {
    const i64 count = elements * element_bits;
    if (count % 8 != 0) throw cut_inside_byte(plan.dtype_, plan.from_->shape());
    return count / 8;
  }

  i64 row_elements(const HolderSet& side, int holder) const {
    const Shape inner = inner_extents(side, holder);
    return std::accumulate(inner.begin(), inner.end(), i64{1}, std::multiplies<>());
  }

  /// Byte offset, in a holder, of the chunk's first row. `local` is the local index of the box's
  /// first element.
  i64 range_offset(const HolderSet& side, int holder, const std::vector<i64>& local,
                   int element_bits) const {
    const auto pick = side.pick(holder);
    i64 row = 0;
    for (size_t a = 0; a <= axis(); ++a) {
      const i64 extent = side.maps(static_cast<int>(a))[static_cast<size_t>(pick[a])].local_size();
      const i64 inside = a < axis() ? at.outer[a] - at.cells[a]->begin : at.row_begin;
      row = row * extent + local[a] + inside;
    }
    return to_bytes(row * row_elements(side, holder), element_bits);
  }

  int input_for(int holder, const std::vector<i64>& local) {
    const auto [found, is_new] =
        input_of_holder.emplace(holder, static_cast<int>(chunk.inputs.size()));
    if (is_new) {
      const int width = plan.element_bits_;
      const i64 row = row_elements(*plan.from_, holder);
      chunk.inputs.push_back({holder, range_offset(*plan.from_, holder, local, width),
                              to_bytes(row * at.rows, width), row * width / 8});
    }
    return found->second;
  }

  int output_for(const HolderJoin::Located& wanted) {
    const int first = wanted.holders.front();
    const auto pick = plan.to_->pick(first).subspan(axis() + 1);
    const auto [found, is_new] = output_of_pick.emplace(std::vector<int>(pick.begin(), pick.end()),
                                                        static_cast<int>(chunk.outputs.size()));
    if (is_new) {
      const i64 elements = row_elements(*plan.to_, first) * at.rows;
      chunk.outputs.push_back({to_bytes(elements, plan.element_bits_),
                               to_bytes(elements, plan.result_bits_),
                               false,
                               {}});
      copied_bytes.push_back(0);
    }
    if (targeted.insert(first).second) {
      const i64 offset = range_offset(*plan.to_, first, wanted.local, plan.result_bits_);
      auto& targets = chunk.outputs[static_cast<size_t>(found->second)].targets;
      for (const int holder : wanted.holders) targets.push_back({holder, offset});
    }
    return found->second;
  }

  /// Rows of a box in a holder's range: local indices of the axes after the chunk axis.
  struct RowSide {
    std::vector<i64> begin;
    Shape extents;
  };
  RowSide row_side(const HolderSet& side, int holder, const std::vector<i64>& local) const {
    RowSide rows{{0}, {at.rows}};
    const Shape inner = inner_extents(side, holder);
    rows.begin.insert(rows.begin.end(), local.begin() + static_cast<std::ptrdiff_t>(axis()) + 1,
                      local.end());
    rows.extents.insert(rows.extents.end(), inner.begin(), inner.end());
    return rows;
  }

  Shape row_sizes(HolderJoin::Box box) const {
    Shape sizes{at.rows};
    for (size_t a = axis() + 1; a < box.size(); ++a) sizes.push_back(box[a]->size);
    return sizes;
  }

  index::StridedCopy lowered(const Shape& sizes, const RowSide& src, const RowSide& dst) const {
    const auto copy =
        index::lower(sizes, {src.begin, src.extents}, {dst.begin, dst.extents}, plan.element_bits_);
    if (!copy) throw cut_inside_byte(plan.dtype_, plan.from_->shape());
    return *copy;
  }

  /// Rows of a box in the whole tensor, outer axes flattened into the row number.
  RowSide global_side(HolderJoin::Box box) const {
    RowSide rows{{0}, {1}};
    for (size_t a = 0; a <= axis(); ++a) {
      const i64 at_axis = a < axis() ? at.outer[a] : box[a]->begin + at.row_begin;
      rows.begin[0] = rows.begin[0] * plan.from_->shape()[a] + at_axis;
      rows.extents[0] *= plan.from_->shape()[a];
    }
    for (size_t a = axis() + 1; a < box.size(); ++a) {
      rows.begin.push_back(box[a]->begin);
      rows.extents.push_back(plan.from_->shape()[a]);
    }
    return rows;
  }

  void add(HolderJoin::Box box) {
    const auto all_wanted = plan.join_.destinations_of(box);
    const HolderJoin::Located source = plan.join_.source_of(box);
    const int holder = source.holders.front();
    const int input = input_for(holder, source.local);
    const Shape sizes = row_sizes(box);
    const RowSide from = row_side(*plan.from_, holder, source.local);
    const RowSide global = global_side(box);
    chunk.input_places.push_back({input, true, lowered(sizes, from, global)});
    chunk.bytes += byte_count(chunk.input_places.back().place);
    std::set<int> reached;
    for (const HolderJoin::Located& wanted : all_wanted) {
      const int output = output_for(wanted);
      if (!reached.insert(output).second) continue;
      const RowSide to = row_side(*plan.to_, wanted.holders.front(), wanted.local);
      chunk.copies.push_back({input, output, lowered(sizes, from, to)});
      chunk.output_places.push_back({output, reached.size() == 1, lowered(sizes, to, global)});
      copied_bytes[static_cast<size_t>(output)] += byte_count(chunk.copies.back().copy);
    }
  }

  void add_boxes(std::vector<const HolderJoin::Cell*>& box) {
    if (std::ssize(box) == plan.join_.rank()) return add(box);
    for (const HolderJoin::Cell& cell : plan.join_.inside(box)) {
      box.push_back(&cell);
      add_boxes(box);
      box.pop_back();
    }
  }
};

void check_move(const TensorMove& move) {
  const auto from = with_an_axis(move.from.holders);
  const auto to = with_an_axis(move.to.holders);
  const HolderJoin join(*from, *to);
  join.for_each_box([&](HolderJoin::Box box) {
    if (!join.sources(box).empty()) return;
    throw Error(ErrorCode::kCoverage, fmt::format("no shard holds elements {}", describe(box)))
        .tensor(move.name)
        .note("shape", to_string(move.shape))
        .help("give the outputs that hold the other ranks' shards, too");
  });
  if (bits(move.dtype) % 8 == 0) return;
  // Sub-byte: every cell must begin and end on a byte; building the chunks of eight rows checks it.
  const ChunkPlan plan(move, {kPage * 1024, kPage * 1024});
  try {
    for (ChunkPlan::Position at; plan.next(at);) plan.chunk(at);
  } catch (Error& error) {
    throw error.tensor(move.name);
  }
}

ChunkPlan::ChunkPlan(const TensorMove& move, ChunkLimits limits)
    : from_(with_an_axis(move.from.holders)),
      to_(with_an_axis(move.to.holders)),
      join_(*from_, *to_),
      limits_(limits),
      dtype_(move.dtype),
      element_bits_(bits(move.dtype)),
      result_bits_(bits(move.result_dtype())),
      scratch_bits_(move.computed ? move.computed->scratch_bits() : 0) {
  choose_chunk_axis();
  i64 elements = 0;
  join_.for_each_box([&](HolderJoin::Box box) { elements += index::elements(box); });
  bytes_ = elements * element_bits_ / 8;
}

/// Rows of any cell of the chunk axis for which the memory has room.
i64 ChunkPlan::rows_that_fit() const {
  i64 rows = std::numeric_limits<i64>::max();
  for (const HolderJoin::Cell& cell : join_.cells(axis_)) {
    const std::vector<i64> outputs = inner_sizes(*to_, axis_, join_.destinations(cell));
    const i64 in_bits = sum(inner_sizes(*from_, axis_, join_.sources(cell))) * element_bits_;
    const i64 all_bits = in_bits + sum(outputs) * std::max(element_bits_, result_bits_) +
                         in_bits / element_bits_ * scratch_bits_;
    // Each output may begin at any offset of a page and gets pages of its own.
    const i64 alignment = 2 * kPage * std::ssize(outputs);
    const i64 arena = std::max(limits_.arena_bytes - alignment, limits_.arena_bytes / 2);
    rows = std::min({rows, arena * 8 / std::max<i64>(all_bits, 1),
                     limits_.input_bytes * 8 / std::max<i64>(in_bits, 1)});
  }
  return rows;
}

void ChunkPlan::choose_chunk_axis() {
  if (join_.cells(0).empty()) return;
  for (axis_ = 0; axis_ < join_.rank(); ++axis_) {
    rows_ = rows_that_fit();
    const i64 whole_bytes = element_bits_ % 8 == 0 ? 1 : 8;
    if (rows_ < whole_bytes) continue;
    const std::vector<i64> outputs =
        inner_sizes(*to_, axis_, join_.destinations(join_.cells(axis_).front()));
    const i64 page_rows =
        kPage / std::gcd(kPage, std::max<i64>(outputs.front() * result_bits_ / 8, 1));
    const i64 step = page_rows <= rows_ ? std::lcm(page_rows, whole_bytes) : whole_bytes;
    rows_ -= step <= rows_ ? rows_ % step : 0;
    return;
  }
  throw Error(ErrorCode::kLimit, "the memory budget does not hold one element for every rank")
      .help(to_->size() > 1 ? "raise --max-memory, or write fewer --ranks at a time"
                            : "raise --max-memory");
}

/// Enters the first cells inside those of the position, down to the chunk axis.
void ChunkPlan::enter(Position& at) const {
  at.row_begin = 0;
  while (std::ssize(at.cells) <= axis_) {
    at.cells.push_back(&join_.inside(at.cells).front());
    if (std::ssize(at.cells) <= axis_) at.outer.push_back(at.cells.back()->begin);
  }
}

/// Moves on to the next rows with other holders or another outer index; false after the last.
bool ChunkPlan::advance(Position& at) const {
  while (!at.cells.empty()) {
    if (at.outer.size() == at.cells.size()) {  // an axis before the chunk axis: its next index
      const HolderJoin::Cell& cell = *at.cells.back();
      if (++at.outer.back() < cell.begin + cell.size) break;
      at.outer.pop_back();
    }
    const HolderJoin::Cell* const next = at.cells.back() + 1;
    at.cells.pop_back();
    const auto cells = join_.inside(at.cells);
    if (next == cells.data() + cells.size()) continue;
    at.cells.push_back(next);
    if (std::ssize(at.cells) <= axis_) at.outer.push_back(next->begin);
    break;
  }
  if (at.cells.empty()) return false;
  enter(at);
  return true;
}

bool ChunkPlan::next(Position& position) const {
  if (join_.cells(0).empty()) return false;
  if (position.sequence < 0) {
    position = {};
    enter(position);
  } else {
    position.row_begin += position.rows;
    if (position.row_begin == position.cells.back()->size && !advance(position)) return false;
  }
  ++position.sequence;
  position.rows = std::min(rows_, position.cells.back()->size - position.row_begin);
  return true;
}

Chunk ChunkPlan::chunk(const Position& position) const {
  Builder builder(*this, position);
  std::vector<const HolderJoin::Cell*> box = position.cells;
  builder.add_boxes(box);
  for (size_t i = 0; i < builder.chunk.outputs.size(); ++i) {
    auto& output = builder.chunk.outputs[i];
    output.has_padding = builder.copied_bytes[i] < output.bytes;
  }
  return std::move(builder.chunk);
}

i64 ChunkPlan::chunks() const {
  std::vector<const HolderJoin::Cell*> box;
  const std::function<i64()> inside = [&] {
    i64 count = 0;
    for (const HolderJoin::Cell& cell : join_.inside(box)) {
      box.push_back(&cell);
      count += std::ssize(box) > axis_ ? (cell.size + rows_ - 1) / rows_ : cell.size * inside();
      box.pop_back();
    }
    return count;
  };
  return inside();
}

i64 ChunkPlan::bytes_to(int destination_holder) const {
  const auto pick = to_->pick(destination_holder);
  i64 elements = 1;
  for (int a = 0; a < join_.rank(); ++a) {
    const AxisMap& map = to_->maps(a)[static_cast<size_t>(pick[static_cast<size_t>(a)])];
    const i64 image = map.image_size();
    elements *= a <= axis_ || image == 0 ? image : map.local_size();
  }
  return elements * result_bits_ / 8;
}

void ChunkPlan::for_each_gap(int destination_holder,
                             const std::function<void(i64 offset, i64 bytes)>& visit) const {
  const auto pick = to_->pick(destination_holder);
  std::vector<const AxisMap*> maps;
  for (int a = 0; a < join_.rank(); ++a) {
    maps.push_back(&to_->maps(a)[static_cast<size_t>(pick[static_cast<size_t>(a)])]);
  }
  std::vector<i64> index_bits(maps.size());  // of one index of each axis
  i64 elements = 1;
  for (size_t a = maps.size(); a-- > 0; elements *= maps[a]->local_size()) {
    index_bits[a] = elements * result_bits_;
  }
  if (bytes_to(destination_holder) == 0) {
    if (elements > 0) visit(0, elements * result_bits_ / 8);
    return;
  }
  const std::function<void(size_t, i64)> walk = [&](size_t a, i64 base) {
    std::vector<index::Piece> pieces(maps[a]->pieces().begin(), maps[a]->pieces().end());
    std::ranges::sort(pieces, {}, &index::Piece::local);
    i64 next = 0;
    const auto skip_to = [&](i64 local) {
      if (local <= next) return;
      visit((base + next * index_bits[a]) / 8, (local - next) * index_bits[a] / 8);
    };
    for (const index::Piece& piece : pieces) {
      skip_to(piece.local);
      next = piece.local + piece.size;
      if (a == static_cast<size_t>(axis_)) continue;
      for (i64 i = piece.local; i < next; ++i) walk(a + 1, base + i * index_bits[a]);
    }
    skip_to(maps[a]->local_size());
  };
  walk(0, 0);
}

bool ChunkPlan::is_sequential(int destination_holder) const {
  const auto pick = to_->pick(destination_holder);
  for (int a = 0; a <= axis_; ++a) {
    const auto number = static_cast<size_t>(pick[static_cast<size_t>(a)]);
    if (!ascending(to_->maps(a)[number])) return false;
  }
  return true;
}

}  // namespace shardtool::exec

#include "lib/engine/run/held_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lib/base/text.h"

namespace shardtool::engine {
namespace {

constexpr i64 kMostListed = 4;
constexpr size_t kMostRuns = 6;

using Text = std::optional<std::string>;

/// Writes local lines as a map from runs of consecutive global lines, "[0, 32) [64, 96)".
index::AxisMap map_of(const std::vector<i64>& held, i64 global_size) {
  std::vector<index::Piece> pieces;
  for (i64 l = 0; l < std::ssize(held); ++l) {
    const i64 g = held[static_cast<size_t>(l)];
    if (g < 0) continue;
    const bool goes_on =
        !pieces.empty() && pieces.back().local_end() == l && pieces.back().global_end() == g;
    if (goes_on) {
      ++pieces.back().size;
    } else {
      pieces.push_back({l, g, 1});
    }
  }
  return index::AxisMap::make(std::ssize(held), global_size, pieces).value_or(index::AxisMap());
}

/// A moved line, or a unit whose lines moved together; then both numbers are those of its first
/// line.
struct Moved {
  i64 to = 0;    ///< global line expected here
  i64 from = 0;  ///< global line found here
};

class Description {
 public:
  Description(const HeldOrder& order, const AxisWords& words) : order_(order), words_(words) {
    for (const index::Piece& piece : order.expected.pieces()) {
      for (i64 i = 0; i < piece.size; ++i) {
        const i64 held = order.held[static_cast<size_t>(piece.local + i)];
        if (held >= 0) lines_.push_back({piece.global + i, held});
        if (held != piece.global + i) ++moved_;
        if (held < 0) ++unknown_;
      }
    }
  }

  Text text() const {
    if (moved_ == unknown_) return std::nullopt;
    using Describe = Text (Description::*)() const;
    for (const Describe describe :
         {&Description::sections, &Description::only_unit, &Description::part_of_another,
          &Description::one_block, &Description::units, &Description::shift, &Description::in_units,
          &Description::runs}) {
      if (Text text = (this->*describe)()) return text;
    }
    return listed(lines_moved(1), words_.index, 1);
  }

 private:
  bool is_complete() const { return unknown_ == 0; }

  /// Returns the moved lines in units of `unit`: those that hold another unit's lines in order;
  /// none if a moved line is not part of such a unit.
  std::vector<Moved> lines_moved(i64 unit) const {
    std::vector<Moved> moved;
    for (const Moved& line : lines_) {
      if (line.to == line.from) continue;
      const i64 begin = words_.section_of(line.to).indices.begin;
      const i64 offset = (line.to - begin) % unit;
      if (offset == 0) {
        moved.push_back(line);
      } else if (moved.empty() || moved.back().to + offset != line.to ||
                 moved.back().from + offset != line.from) {
        return {};
      }
    }
    return moved;
  }

  std::string unit_text(i64 line) const {
    const AxisSection& section = words_.section_of(line);
    const i64 number = (line - section.indices.begin) / section.unit;
    if (section.name.empty()) return fmt::format("{} {}", section.unit_name, number);
    // Avoids "k kv head 0".
    const size_t space = section.unit_name.rfind(' ');
    return fmt::format("{} {} {}", section.name,
                       section.unit_name.substr(space == std::string::npos ? 0 : space + 1),
                       number);
  }

  std::string listed(const std::vector<Moved>& moved, const std::string& name, i64 unit) const {
    std::string text;
    for (i64 i = 0; i < std::min(kMostListed, std::ssize(moved)); ++i) {
      const Moved& one = moved[static_cast<size_t>(i)];
      const bool in_units = unit > 1 || words_.section_of(one.to).unit == 1;
      const auto word = [&](i64 line) {
        return in_units ? unit_text(line) : fmt::format("{} {}", name, line);
      };
      text += fmt::format("{}{} holds {}", i == 0 ? "" : ", ", word(one.to), word(one.from));
    }
    const i64 more = std::ssize(moved) - kMostListed;
    return more > 0 ? text + fmt::format(" and {} more are elsewhere", format_count(more)) : text;
  }

  /// Detects fused sections that are exchanged: gate has the content of up.
  Text sections() const {
    if (words_.sections.size() < 2 || !is_complete()) return std::nullopt;
    std::string text;
    for (const AxisSection& section : words_.sections) {
      const AxisSection* source = nullptr;
      for (const Moved& line : lines_) {
        if (line.to < section.indices.begin || line.to >= section.indices.end) continue;
        const AxisSection& from = words_.section_of(line.from);
        const bool same_place = line.to - section.indices.begin == line.from - from.indices.begin;
        if (!same_place || (source != nullptr && source != &from)) return std::nullopt;
        source = &from;
      }
      if (source == nullptr || source == &section || source->name.empty()) continue;
      text += fmt::format("{}{} holds {}", text.empty() ? "" : ", ", section.name, source->name);
    }
    return text.empty() ? Text() : text;
  }

  /// Detects a wrong unit on a device that has only one, such as a KV head.
  Text only_unit() const {
    if (words_.sections.size() != 1) return std::nullopt;
    const i64 unit = words_.sections.front().unit;
    if (unit == 1 || std::ssize(lines_) != unit) return std::nullopt;
    const auto moved = lines_moved(unit);
    return moved.size() == 1 ? Text(listed(moved, "", unit)) : std::nullopt;
  }

  Text part_of_another() const {
    const index::AxisMap map = map_of(order_.held, order_.expected.global_size());
    for (const auto& [rank, other] : order_.others) {
      if (is_complete() && !(other == order_.expected) && other.image_size() > 1 && other == map) {
        return fmt::format("holds the shard of rank {}", rank);
      }
    }
    return std::nullopt;
  }

  Text units() const {
    i64 unit = 0;
    for (const AxisSection& section : words_.sections) unit = std::gcd(unit, section.unit);
    if (unit == 1) return std::nullopt;
    const auto moved = lines_moved(unit);
    for (const Moved& one : moved) {
      const AxisSection& from = words_.section_of(one.from);
      if ((one.from - from.indices.begin) % from.unit != 0) return std::nullopt;
    }
    return moved.empty() ? Text() : listed(moved, "", unit);
  }

  Text shift() const {
    constexpr i64 kFewest = 3;
    i64 by = 0;
    for (const Moved& line : lines_) {
      if (line.from == line.to) continue;
      if (by != 0 && line.from - line.to != by) return std::nullopt;
      by = line.from - line.to;
    }
    if (moved_ < kFewest) return std::nullopt;
    const bool is_all = moved_ == std::ssize(lines_) + unknown_;
    return is_all ? Text(fmt::format("{}s are shifted by {:+}", words_.index, by)) : std::nullopt;
  }

  /// Detects the same permutation in every unit: rotation halves that are interleaved, or the
  /// reverse.
  Text in_units() const {
    for (const bool halves : {true, false}) {
      bool fits = moved_ > 1 && is_complete();
      for (const Moved& line : lines_) {
        const AxisSection& section = words_.section_of(line.to);
        const i64 offset = (line.to - section.indices.begin) % section.unit;
        const i64 half = section.unit / 2;
        const i64 turn = offset % 2 == 0 ? offset / 2 : half + offset / 2;
        const i64 apart = offset < half ? 2 * offset : 2 * (offset - half) + 1;
        fits = fits && section.unit % 2 == 0 && section.unit > 2 &&
               line.from == line.to - offset + (halves ? apart : turn);
      }
      if (!fits) continue;
      const std::string& unit = words_.sections.front().unit_name;
      return halves ? fmt::format("{}s of every {} are in halves instead of interleaved",
                                  words_.index, unit)
                    : fmt::format("{}s of every {} are interleaved instead of in halves",
                                  words_.index, unit);
    }
    return std::nullopt;
  }

  /// Detects one run where several are expected: a fused tensor was cut as if it had one section.
  Text one_block() const {
    const index::AxisMap map = map_of(order_.held, order_.expected.global_size());
    return map.pieces().size() == 1 && order_.expected.pieces().size() > 1 ? runs() : Text();
  }

  Text runs() const {
    const index::AxisMap map = map_of(order_.held, order_.expected.global_size());
    if (!is_complete() || map.pieces().empty() || map.pieces().size() > kMostRuns) {
      return std::nullopt;
    }
    if (moved_ <= kMostListed) return std::nullopt;
    return fmt::format("holds {}s {} instead of {}", words_.index, to_string(map),
                       to_string(order_.expected));
  }

  const HeldOrder& order_;
  const AxisWords& words_;
  std::vector<Moved> lines_;  ///< known lines
  i64 moved_ = 0;             ///< number of lines with another line's content, or unknown content
  i64 unknown_ = 0;
};

}  // namespace

bool is_known(const HeldOrder& order) {
  i64 moved = 0;
  i64 unknown = 0;
  for (const index::Piece& piece : order.expected.pieces()) {
    for (i64 i = 0; i < piece.size; ++i) {
      const i64 held = order.held[static_cast<size_t>(piece.local + i)];
      moved += held != piece.global + i ? 1 : 0;
      unknown += held < 0 ? 1 : 0;
    }
  }
  constexpr i64 kOneIn = 6;
  return moved > unknown && unknown <= std::max<i64>(moved > 3 ? 1 : 0, moved / kOneIn);
}

std::optional<std::string> describe(const HeldOrder& order, const AxisWords& words) {
  if (!is_known(order)) return std::nullopt;
  return Description(order, words).text();
}

}  // namespace shardtool::engine

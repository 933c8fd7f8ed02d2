#include "lib/layout/axis_expr.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "lib/base/error.h"

namespace shardtool::layout {
namespace {

using index::AxisMap;
using index::Interval;
using mesh::Mesh;

template <class... Ts>
struct overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
overloaded(Ts...) -> overloaded<Ts...>;

void require(bool holds, std::string message) {
  if (!holds) throw Error(ErrorCode::kStrategy, std::move(message));
}

/// Rounds n up to the least common multiple of the rule's m and the parts.
i64 padded_size(i64 n, i64 parts, SplitRule rule) {
  const i64 gcd = std::gcd(rule.multiple, parts);
  const auto multiple = checked_mul(rule.multiple / gcd, parts);
  const auto blocks = multiple ? checked_mul(ceil_div(n, *multiple), *multiple) : std::nullopt;
  if (!blocks) throw Error(ErrorCode::kLimit, "a padded axis has 2^63 elements or more");
  return *blocks;
}

void check_size(i64 n) {
  require(n >= 0, fmt::format("an axis of {} elements", n));
}

void check(SplitRule rule) {
  require(rule.multiple >= 1, fmt::format("padding to a multiple of {}", rule.multiple));
}

void check(const Split& node) {
  check_size(node.n);
  check(node.rule);
}

void check(const Cuts& node) {
  require(
      !node.boundaries.empty() && node.boundaries.front() == 0 &&
          std::is_sorted(node.boundaries.begin(), node.boundaries.end()),
      fmt::format("cuts [{}] must begin at 0 and never fall", fmt::join(node.boundaries, ", ")));
}

void check(const Owners& node) {
  check_size(node.n);
  for (const auto& units : node.owned) {
    std::vector<i64> sorted = units;
    std::sort(sorted.begin(), sorted.end());
    const bool twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
    require(!twice, fmt::format("a rank owns a unit twice: [{}]", fmt::join(units, ", ")));
    const bool inside = sorted.empty() || (sorted.front() >= 0 && sorted.back() < node.n);
    require(inside,
            fmt::format("owned units [{}] are outside [0, {})", fmt::join(units, ", "), node.n));
  }
}

void check_node(const AxisExpr::Node& node) {
  std::visit(
      overloaded{
          [](const Whole& e) { check_size(e.n); },
          [](const Split& e) { check(e); },
          [](const Cuts& e) { check(e); },
          [](const Owners& e) { check(e); },
          [](const Scale& e) { require(e.unit >= 1, fmt::format("a unit of {} indices", e.unit)); },
          [](const Product&) {},
          [](const Concat& e) { require(!e.sections.empty(), "a concat of no sections"); },
          [](const Nest& e) { check(e.rule); },
          [](const Pad&) {},
      },
      node);
}

AxisMap evaluate_owners(const Owners& e, const Mesh& mesh, i64 rank) {
  const i64 parts = extent(mesh, e.over);
  require(static_cast<i64>(e.owned.size()) == parts,
          fmt::format("{} owner lists over mesh axes {} of {} ranks", e.owned.size(),
                      to_string(e.over), parts));
  const auto& units = e.owned[static_cast<size_t>(index_along(mesh, e.over, rank))];
  std::vector<index::Piece> pieces;
  for (size_t i = 0; i < units.size(); ++i) pieces.push_back({static_cast<i64>(i), units[i], 1});
  return AxisMap(static_cast<i64>(units.size()), e.n, std::move(pieces));
}

AxisMap evaluate_cuts(const Cuts& e, const Mesh& mesh, i64 rank) {
  const i64 parts = extent(mesh, e.over);
  require(static_cast<i64>(e.boundaries.size()) == parts + 1,
          fmt::format("{} cut boundaries over mesh axes {}, expected {}", e.boundaries.size(),
                      to_string(e.over), parts + 1));
  const auto part = static_cast<size_t>(index_along(mesh, e.over, rank));
  return AxisMap::slice(e.boundaries.back(), {e.boundaries[part], e.boundaries[part + 1]});
}

/// Part of n units at the device's index along `over`, as local -> unit.
AxisMap evaluate_split(i64 n, const Over& over, SplitRule rule, const Mesh& mesh, i64 rank) {
  const i64 parts = extent(mesh, over);
  const i64 index = index_along(mesh, over, rank);
  const Interval part = part_of(n, parts, index, rule);
  return AxisMap(part_extent(n, parts, index, rule), n, {{0, part.begin, part.size()}});
}

AxisMap evaluate_pad(const Pad& e, const Mesh& mesh, i64 rank) {
  i64 largest = 0;
  for (i64 r = 0; r < mesh.size(); ++r) {
    largest = std::max(largest, evaluate(*e.of, mesh, r).local_size());
  }
  return index::pad(evaluate(*e.of, mesh, rank), largest);
}

void collect_overs(const AxisExpr& expr, std::vector<Over>& found) {
  std::visit(overloaded{
                 [](const Whole&) {},
                 [&](const Split& e) { found.push_back(e.over); },
                 [&](const Cuts& e) { found.push_back(e.over); },
                 [&](const Owners& e) { found.push_back(e.over); },
                 [&](const Scale& e) { collect_overs(*e.of, found); },
                 [&](const Product& e) {
                   collect_overs(*e.outer, found);
                   collect_overs(*e.inner, found);
                 },
                 [&](const Concat& e) {
                   for (const AxisExpr& section : e.sections) collect_overs(section, found);
                 },
                 [&](const Nest& e) {
                   collect_overs(*e.of, found);
                   found.push_back(e.over);
                 },
                 [&](const Pad& e) { collect_overs(*e.of, found); },
             },
             expr.node());
}

std::string rule_suffix(SplitRule rule) {
  return rule == kBalanced ? "" : ", " + to_string(rule);
}

std::string print(const Owners& e) {
  std::string lists;
  for (const auto& units : e.owned) {
    lists += fmt::format("{}[{}]", lists.empty() ? "" : ", ", fmt::join(units, ", "));
  }
  return fmt::format("Owners({}, [{}], {})", e.n, lists, to_string(e.over));
}

std::string print(const Concat& e) {
  std::vector<std::string> texts;
  for (const AxisExpr& section : e.sections) texts.push_back(to_string(section));
  const bool equal = std::all_of(texts.begin(), texts.end(),
                                 [&](const std::string& text) { return text == texts.front(); });
  if (equal && texts.size() > 1) return fmt::format("Repeat({}, {})", texts.size(), texts.front());
  return fmt::format("Concat({})", fmt::join(texts, ", "));
}

}  // namespace

Interval part_of(i64 n, i64 parts, i64 index, SplitRule rule) {
  switch (rule.kind) {
    case SplitRule::Kind::kExact:
      if (n % parts != 0) {
        throw Error(ErrorCode::kNotDivisible,
                    fmt::format("{} units cannot be split evenly over {} ranks: {} % {} = {}", n,
                                parts, n, parts, n % parts));
      }
      return {n / parts * index, n / parts * (index + 1)};
    case SplitRule::Kind::kBalanced: {
      const i64 begin = n / parts * index + std::min(index, n % parts);
      return {begin, begin + n / parts + (index < n % parts ? 1 : 0)};
    }
    case SplitRule::Kind::kMiddle: {
      const i64 larger = n % parts;
      const auto begin_of = [&](i64 part) {
        return n / parts * part + std::clamp<i64>(part - (parts - 1 - larger), 0, larger);
      };
      return {begin_of(index), begin_of(index + 1)};
    }
    case SplitRule::Kind::kCeil:
    case SplitRule::Kind::kPadded: {
      const i64 size = part_extent(n, parts, 0, rule);
      // A part that begins past the end is empty; comparing quotients keeps the product in range.
      const i64 begin = size == 0 || index > n / size ? n : std::min(size * index, n);
      return {begin, begin + std::min(size, n - begin)};
    }
  }
  throw Error(ErrorCode::kInternal, "unknown split rule");
}

i64 part_extent(i64 n, i64 parts, i64 index, SplitRule rule) {
  switch (rule.kind) {
    case SplitRule::Kind::kExact:
    case SplitRule::Kind::kBalanced:
    case SplitRule::Kind::kMiddle:
      return part_of(n, parts, index, rule).size();
    case SplitRule::Kind::kCeil:
      return index == 0 ? ceil_div(n, parts) : part_of(n, parts, index, rule).size();
    case SplitRule::Kind::kPadded:
      return padded_size(n, parts, rule) / parts;
  }
  throw Error(ErrorCode::kInternal, "unknown split rule");
}

AxisExpr::AxisExpr(Node node) {
  check_node(node);
  node_ = std::make_shared<const Node>(std::move(node));
}

i64 AxisExpr::size() const {
  const auto checked = [](std::optional<i64> size) {
    if (!size) throw Error(ErrorCode::kLimit, "an axis has 2^63 elements or more");
    return *size;
  };
  return std::visit(
      overloaded{
          [](const Whole& e) { return e.n; },
          [](const Split& e) { return e.n; },
          [](const Cuts& e) { return e.boundaries.back(); },
          [](const Owners& e) { return e.n; },
          [&](const Scale& e) { return checked(checked_mul(e.of->size(), e.unit)); },
          [&](const Product& e) { return checked(checked_mul(e.outer->size(), e.inner->size())); },
          [&](const Concat& e) {
            i64 total = 0;
            for (const AxisExpr& section : e.sections) {
              total = checked(checked_add(total, section.size()));
            }
            return total;
          },
          [](const Nest& e) { return e.of->size(); },
          [](const Pad& e) { return e.of->size(); },
      },
      *node_);
}

bool AxisExpr::is_sharded() const {
  return !axes_used(*this).empty();
}

AxisExpr whole(i64 n) {
  return AxisExpr(Whole{n});
}
AxisExpr split(i64 n, Over over, SplitRule rule) {
  return AxisExpr(Split{n, std::move(over), rule});
}
AxisExpr cuts(std::vector<i64> boundaries, Over over) {
  return AxisExpr(Cuts{std::move(boundaries), std::move(over)});
}
AxisExpr owners(i64 n, std::vector<std::vector<i64>> owned, Over over) {
  return AxisExpr(Owners{n, std::move(owned), std::move(over)});
}
AxisExpr scale(AxisExpr of, i64 unit) {
  if (unit == 1) return of;
  return AxisExpr(Scale{std::make_shared<const AxisExpr>(std::move(of)), unit});
}
AxisExpr product(AxisExpr outer, AxisExpr inner) {
  // An axis that no device cuts may still have padding, or another order.
  const bool is_whole = inner.size() > 0 && !inner.is_sharded() &&
                        evaluate(inner, Mesh(), 0) == AxisMap::identity(inner.size());
  if (is_whole) return scale(std::move(outer), inner.size());
  return AxisExpr(Product{std::make_shared<const AxisExpr>(std::move(outer)),
                          std::make_shared<const AxisExpr>(std::move(inner))});
}
AxisExpr concat(std::vector<AxisExpr> sections) {
  if (sections.size() == 1) return sections.front();
  return AxisExpr(Concat{std::move(sections)});
}
AxisExpr repeat(i64 m, const AxisExpr& section) {
  return concat(std::vector<AxisExpr>(static_cast<size_t>(std::max<i64>(m, 0)), section));
}
AxisExpr nest(AxisExpr of, Over over, SplitRule rule) {
  return AxisExpr(Nest{std::make_shared<const AxisExpr>(std::move(of)), std::move(over), rule});
}
AxisExpr pad(AxisExpr of) {
  return AxisExpr(Pad{std::make_shared<const AxisExpr>(std::move(of))});
}

AxisMap evaluate(const AxisExpr& expr, const Mesh& mesh, i64 rank) {
  return std::visit(
      overloaded{
          [](const Whole& e) { return AxisMap::identity(e.n); },
          [&](const Split& e) { return evaluate_split(e.n, e.over, e.rule, mesh, rank); },
          [&](const Cuts& e) { return evaluate_cuts(e, mesh, rank); },
          [&](const Owners& e) { return evaluate_owners(e, mesh, rank); },
          [&](const Scale& e) { return index::scale(evaluate(*e.of, mesh, rank), e.unit); },
          [&](const Product& e) {
            return index::product(evaluate(*e.outer, mesh, rank), evaluate(*e.inner, mesh, rank));
          },
          [&](const Concat& e) {
            std::vector<AxisMap> sections;
            for (const AxisExpr& section : e.sections) {
              sections.push_back(evaluate(section, mesh, rank));
            }
            return index::concat(sections);
          },
          [&](const Nest& e) {
            const AxisMap outer = evaluate(*e.of, mesh, rank);
            return index::compose(outer,
                                  evaluate_split(outer.local_size(), e.over, e.rule, mesh, rank));
          },
          [&](const Pad& e) { return evaluate_pad(e, mesh, rank); },
      },
      expr.node());
}

std::vector<Over> overs(const AxisExpr& expr) {
  std::vector<Over> found;
  collect_overs(expr, found);
  return found;
}

std::vector<mesh::AxisRef> axes_used(const AxisExpr& expr) {
  std::vector<mesh::AxisRef> used;
  for (const Over& over : overs(expr)) {
    for (const mesh::AxisRef& ref : over) {
      if (std::find(used.begin(), used.end(), ref) == used.end()) used.push_back(ref);
    }
  }
  return used;
}

std::string to_string(SplitRule rule) {
  switch (rule.kind) {
    case SplitRule::Kind::kExact:
      return "exact";
    case SplitRule::Kind::kBalanced:
      return "balanced";
    case SplitRule::Kind::kMiddle:
      return "middle";
    case SplitRule::Kind::kCeil:
      return "ceil";
    case SplitRule::Kind::kPadded:
      return fmt::format("padded({})", rule.multiple);
  }
  throw Error(ErrorCode::kInternal, "unknown split rule");
}

std::string to_string(const AxisExpr& expr) {
  return std::visit(
      overloaded{
          [](const Whole& e) { return fmt::format("Whole({})", e.n); },
          [](const Split& e) {
            return fmt::format("Split({}, {}{})", e.n, to_string(e.over), rule_suffix(e.rule));
          },
          [](const Cuts& e) {
            return fmt::format("Cuts([{}], {})", fmt::join(e.boundaries, ", "), to_string(e.over));
          },
          [](const Owners& e) { return print(e); },
          [](const Scale& e) { return fmt::format("Scale({}, {})", to_string(*e.of), e.unit); },
          [](const Product& e) {
            return fmt::format("Product({}, {})", to_string(*e.outer), to_string(*e.inner));
          },
          [](const Concat& e) { return print(e); },
          [](const Nest& e) {
            return fmt::format("Nest({}, {}{})", to_string(*e.of), to_string(e.over),
                               rule_suffix(e.rule));
          },
          [](const Pad& e) { return fmt::format("Pad({})", to_string(*e.of)); },
      },
      expr.node());
}

}  // namespace shardtool::layout

#include <fmt/format.h>

#include <algorithm>

#include "lib/tutorial/proof/proof.h"

namespace shardtool::tutorial {
namespace {

template <Number T>
double largest(const Matrix<T>& a) {
  double result = 0;
  for (const T value : a.values()) result = std::max(result, magnitude(value));
  return result;
}

/// True if extents are equal and every element is within the arithmetic's tolerance, relative to
/// `scale`.
template <Number T>
bool are_close(const Matrix<T>& a, const Matrix<T>& b, double scale) {
  if (a.rows() != b.rows() || a.columns() != b.columns()) return false;
  for (size_t i = 0; i < a.values().size(); ++i) {
    if (magnitude(a.values()[i] - b.values()[i]) > tolerance<T>() * scale) return false;
  }
  return true;
}

/// One array on all devices.
template <Number T>
struct Held {
  const Matrix<T>& expected;
  const MatrixPlacement& placement;
  std::vector<Matrix<T>> parts;
  double scale = 1;

  int devices() const { return static_cast<int>(parts.size()); }
  bool is_replicated() const {
    return placement.kind == MatrixPlacement::Kind::kReplicated && parts.size() > 1;
  }
};

/// Describes a range that the placement's parts do not cover; empty if there is none.
template <Number T>
std::string missing_tail(const Held<T>& held) {
  if (held.placement.parts.empty()) return "";
  const bool by_rows = held.placement.kind == MatrixPlacement::Kind::kRows;
  const i64 size = held.expected.extent(by_rows ? Axis::kRows : Axis::kColumns);
  const i64 covered = held.placement.parts.back().end;
  if (covered == size) return "";
  return fmt::format("the ranks hold {} of its {} {}: the tail is dropped", covered, size,
                     by_rows ? "rows" : "columns");
}

/// True if every device has k times its expected values.
template <Number T>
bool is_multiple(const Held<T>& held, i64 k) {
  for (int device = 0; device < held.devices(); ++device) {
    const Matrix<T> expected = cut(held.expected, held.placement, device);
    if (!are_close(held.parts[device], scaled(expected, from_integer<T>(k)),
                   held.scale * static_cast<double>(k))) {
      return false;
    }
  }
  return true;
}

template <Number T>
bool is_summand(const Held<T>& held) {
  if (!held.is_replicated()) return false;
  Matrix<T> sum = held.parts.front();
  for (int device = 1; device < held.devices(); ++device) {
    if (held.parts[device].values().size() != sum.values().size()) return false;
    sum = plus(std::move(sum), held.parts[device]);
  }
  return are_close(sum, held.expected, held.scale);
}

/// Likely cause of such parts; empty if unknown.
template <Number T>
std::string cause(const Held<T>& held) {
  if (is_summand(held)) return "the ranks' values add up to it: a sum is missing";
  for (i64 k = 2; k <= held.devices(); ++k) {
    if (!is_multiple(held, k)) continue;
    return fmt::format("{} times what it should be: {}", k,
                       k == held.devices() ? "it is summed twice" : "it counts more than once");
  }
  if (!held.is_replicated()) return "";
  for (int device = 1; device < held.devices(); ++device) {
    if (held.parts[device] == held.parts[0]) continue;
    return fmt::format("ranks 0 and {} should hold the same and do not", device);
  }
  return "";
}

/// Difference between a device's part and the expected one.
struct PartDistance {
  double worst = 0;
  std::string first;  ///< position of the first; empty if all are within the tolerance
};

template <Number T>
PartDistance difference_of(const Held<T>& held, int device) {
  const Matrix<T>& part = held.parts[device];
  const Matrix<T> expected = cut(held.expected, held.placement, device);
  if (part.rows() != expected.rows() || part.columns() != expected.columns()) {
    return {1, fmt::format("rank {} has {} x {}, expected {} x {}", device, part.rows(),
                           part.columns(), expected.rows(), expected.columns())};
  }
  PartDistance result;
  for (size_t i = 0; i < part.values().size(); ++i) {
    const double gap = magnitude(part.values()[i] - expected.values()[i]) / held.scale;
    // Written so that NaN also fails.
    if (result.first.empty() && !(gap <= tolerance<T>())) {
      result.first =
          fmt::format("first at rank {} [{}, {}]", device, i / part.columns(), i % part.columns());
    }
    result.worst = gap > result.worst || std::isnan(gap) ? gap : result.worst;
  }
  return result;
}

}  // namespace

template <Number T>
ArrayVerdict judge(Device<T>& device, const std::string& name, const Matrix<T>& expected,
                   const MatrixPlacement& placement, const Matrix<T>& part) {
  const double size = largest(expected);
  const Held<T> held{expected, placement, device.census(part), size == 0 ? 1 : size};
  const std::string missing = missing_tail(held);
  if (!missing.empty()) return {name, false, 1, missing};
  PartDistance all;
  for (int d = 0; d < held.devices(); ++d) {
    PartDistance one = difference_of(held, d);
    if (all.first.empty()) all.first = std::move(one.first);
    if (one.worst > all.worst || std::isnan(one.worst)) all.worst = one.worst;
  }
  if (all.first.empty()) return {name, true, all.worst, ""};
  const std::string why = cause(held);
  return {name, false, all.worst,
          why.empty() ? "differs, " + all.first : fmt::format("{} ({})", why, all.first)};
}

template ArrayVerdict judge(Device<Field>&, const std::string&, const Matrix<Field>&,
                            const MatrixPlacement&, const Matrix<Field>&);
template ArrayVerdict judge(Device<double>&, const std::string&, const Matrix<double>&,
                            const MatrixPlacement&, const Matrix<double>&);
template ArrayVerdict judge(Device<float>&, const std::string&, const Matrix<float>&,
                            const MatrixPlacement&, const Matrix<float>&);

}  // namespace shardtool::tutorial

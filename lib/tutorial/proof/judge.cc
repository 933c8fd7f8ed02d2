#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lib/comm/packed.h"
#include "lib/tutorial/proof/proof.h"

namespace shardtool::tutorial {
namespace {

/// Largest magnitude, to which differences are relative; 1 if all are 0.
template <Number T>
double scale_of(const Matrix<T>& a) {
  double largest = 0;
  for (const T value : a.values()) largest = std::max(largest, magnitude(value));
  return largest == 0 ? 1 : largest;
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
  double scale;

  int devices() const { return static_cast<int>(parts.size()); }
  bool is_replicated() const {
    return placement.kind == MatrixPlacement::Kind::kReplicated && parts.size() > 1;
  }
};

/// Describes a range that the placement's parts do not cover; empty if there is none.
template <Number T>
std::string missing_tail(const Matrix<T>& expected, const MatrixPlacement& placement) {
  if (placement.parts.empty()) return "";
  const bool by_rows = placement.kind == MatrixPlacement::Kind::kRows;
  const i64 size = expected.extent(by_rows ? Axis::kRows : Axis::kColumns);
  const i64 covered = placement.parts.back().end;
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

std::string message_of(const std::vector<PartDistance>& distances) {
  comm::Packer packer;
  for (const PartDistance& one : distances) {
    std::string worst(sizeof one.worst, '\0');
    std::memcpy(worst.data(), &one.worst, sizeof one.worst);
    packer.add(worst).add(one.first);
  }
  return packer.take();
}

PartDistance next_distance(comm::Unpacker& texts) {
  PartDistance one;
  std::memcpy(&one.worst, texts.next().data(), sizeof one.worst);
  one.first = texts.next();
  return one;
}

/// Largest of all devices' distances of each array, and the first position in device order. Each
/// device compares its own parts, so that only parts that differ are exchanged.
template <Number T>
std::vector<PartDistance> of_all(Device<T>& device, const std::vector<PartDistance>& own) {
  std::vector<PartDistance> all(own.size());
  for (const std::string& message : device.census(message_of(own))) {
    comm::Unpacker texts(message);
    for (PartDistance& array : all) {
      PartDistance one = next_distance(texts);
      if (array.first.empty()) array.first = std::move(one.first);
      if (one.worst > array.worst || std::isnan(one.worst)) array.worst = one.worst;
    }
  }
  return all;
}

/// Distance of this device's part.
template <Number T>
PartDistance distance_of(const JudgedArray<T>& array, int device) {
  const Matrix<T>& part = array.part;
  const Matrix<T> expected = cut(array.expected, array.placement, device);
  if (part.rows() != expected.rows() || part.columns() != expected.columns()) {
    return {1, fmt::format("rank {} has {} x {}, expected {} x {}", device, part.rows(),
                           part.columns(), expected.rows(), expected.columns())};
  }
  const double scale = scale_of(array.expected);
  PartDistance result;
  for (size_t i = 0; i < part.values().size(); ++i) {
    const double gap = magnitude(part.values()[i] - expected.values()[i]) / scale;
    // Written so that NaN also fails.
    if (result.first.empty() && !(gap <= tolerance<T>())) {
      result.first =
          fmt::format("first at rank {} [{}, {}]", device, i / part.columns(), i % part.columns());
    }
    result.worst = gap > result.worst || std::isnan(gap) ? gap : result.worst;
  }
  return result;
}

/// Verdict on an array of this distance.
template <Number T>
ArrayVerdict verdict_on(Device<T>& device, const JudgedArray<T>& array, const PartDistance& all) {
  const std::string missing = missing_tail(array.expected, array.placement);
  if (!missing.empty()) return {array.name, false, 1, missing};
  if (all.first.empty()) return {array.name, true, all.worst, ""};
  // Every device knows of the difference, and takes part.
  const Held<T> held{array.expected, array.placement, device.census(array.part),
                     scale_of(array.expected)};
  const std::string why = cause(held);
  return {array.name, false, all.worst,
          why.empty() ? "differs, " + all.first : fmt::format("{} ({})", why, all.first)};
}

}  // namespace

template <Number T>
std::vector<ArrayVerdict> judge(Device<T>& device, const std::vector<JudgedArray<T>>& arrays) {
  std::vector<PartDistance> own;
  for (const JudgedArray<T>& array : arrays) own.push_back(distance_of(array, device.device_id()));
  const std::vector<PartDistance> all = of_all(device, own);
  std::vector<ArrayVerdict> verdicts;
  for (size_t i = 0; i < arrays.size(); ++i) {
    verdicts.push_back(verdict_on(device, arrays[i], all[i]));
  }
  return verdicts;
}

template std::vector<ArrayVerdict> judge(Device<Field>&, const std::vector<JudgedArray<Field>>&);
template std::vector<ArrayVerdict> judge(Device<double>&, const std::vector<JudgedArray<double>>&);
template std::vector<ArrayVerdict> judge(Device<float>&, const std::vector<JudgedArray<float>>&);

}  // namespace shardtool::tutorial

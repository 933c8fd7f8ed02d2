#include <fmt/format.h>
#include <fmt/ranges.h>

#include "shardtool/engine/mlp/proof.h"

namespace shardtool::engine::mlp {
namespace {

/// Along which axis a placement cuts.
Axis axis_of(const Placement& placement) {
  return placement.kind == Placement::Kind::kColumns ? Axis::kColumns : Axis::kRows;
}

/// The index along `axis` at which `whole` has this one row or column, or -1.
template <Number T>
i64 index_of(const Matrix<T>& line, const Matrix<T>& whole, Axis axis) {
  for (i64 i = 0; i < whole.extent(axis); ++i) {
    if (slice(whole, axis, {i, i + 1}) == line) return i;
  }
  return -1;
}

/// What one device holds in the place of what belongs there, or nothing.
template <Number T>
std::string misplacement(const std::string& name, const Matrix<T>& whole,
                         const Placement& placement, int device, const Matrix<T>& held) {
  const Matrix<T> expected = cut(whole, placement, device);
  if (held.rows() != expected.rows() || held.columns() != expected.columns()) return "";
  const Axis axis = axis_of(placement);
  const i64 first = placement.parts.empty() ? 0 : placement.parts[device].begin;
  for (i64 i = 0; i < held.extent(axis); ++i) {
    const Matrix<T> line = slice(held, axis, {i, i + 1});
    if (line == slice(expected, axis, {i, i + 1})) continue;
    const std::string_view word = axis == Axis::kRows ? "row" : "column";
    const i64 found = index_of(line, whole, axis);
    const std::string what = found < 0 ? fmt::format("a {} that is nowhere in it", word)
                                       : fmt::format("{} {}", word, found);
    return fmt::format("device {} holds {} of {} where {} {} belongs", device, what, name, word,
                       first + i);
  }
  return "";
}

template <Number T>
std::vector<std::string> misplacements(Device<T>& device, const System<T>& system,
                                       const Workload<T>& workload) {
  std::vector<std::string> findings;
  for (const auto& [name, whole] : workload.parameters) {
    const Matrix<T>* own = find(system.held(), name);
    const std::vector<Matrix<T>> held = device.census(own == nullptr ? Matrix<T>() : *own);
    for (int d = 0; d < device.num_devices(); ++d) {
      std::string finding = misplacement(name, whole, system.placements().at(name), d, held[d]);
      if (!finding.empty()) findings.push_back(std::move(finding));
    }
  }
  return findings;
}

std::string count_finding(std::string_view pass, const Counts& found, const Counts& expected) {
  return fmt::format("{} communicates {}, expected {}", pass, to_string(found),
                     to_string(expected));
}

}  // namespace

template <Number T>
std::string diagnosis(Device<T>& device, const System<T>& system, const Workload<T>& workload,
                      const Proof& proof, const ExpectedCounts& expected) {
  std::vector<std::string> findings = misplacements(device, system, workload);
  if (proof.forward != expected.forward) {
    findings.push_back(count_finding("forward", proof.forward, expected.forward));
  }
  if (proof.backward != expected.backward) {
    findings.push_back(count_finding("backward", proof.backward, expected.backward));
  }
  for (const ArrayVerdict& verdict : proof.arrays) {
    if (verdict.is_equal) continue;
    const bool is_gradient = verdict.name != "y" && verdict.name != kInputGradient;
    findings.push_back(
        fmt::format("{}{}: {}", is_gradient ? "gradient of " : "", verdict.name, verdict.finding));
  }
  return fmt::format("{}", fmt::join(findings, "; "));
}

template std::string diagnosis(Device<Field>&, const System<Field>&, const Workload<Field>&,
                               const Proof&, const ExpectedCounts&);
template std::string diagnosis(Device<double>&, const System<double>&, const Workload<double>&,
                               const Proof&, const ExpectedCounts&);
template std::string diagnosis(Device<float>&, const System<float>&, const Workload<float>&,
                               const Proof&, const ExpectedCounts&);
}  // namespace shardtool::engine::mlp

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/comm/packed.h"
#include "lib/tutorial/proof/proof.h"

namespace shardtool::tutorial {
namespace {

/// Axis of a placement's cut.
Axis axis_of(const MatrixPlacement& placement) {
  return placement.kind == MatrixPlacement::Kind::kColumns ? Axis::kColumns : Axis::kRows;
}

/// Index along `axis` of this row or column in `whole`, or -1.
template <Number T>
i64 index_of(const Matrix<T>& line, const Matrix<T>& whole, Axis axis) {
  const Axis across = axis == Axis::kRows ? Axis::kColumns : Axis::kRows;
  if (line.extent(across) != whole.extent(across)) return -1;
  for (i64 i = 0; i < whole.extent(axis); ++i) {
    if (slice(whole, axis, {i, i + 1}) == line) return i;
  }
  return -1;
}

std::string_view word_for(Axis axis) {
  return axis == Axis::kRows ? "row" : "column";
}

/// "row 3 of layer_1/weights": position of this row or column among the parameters; searches `name`
/// first.
template <Number T>
std::string origin(const Matrix<T>& line, Axis axis, const std::string& name,
                   const Parameters<T>& parameters) {
  const i64 own = index_of(line, parameters.at(name), axis);
  if (own >= 0) return fmt::format("{} {} of {}", word_for(axis), own, name);
  for (const auto& [other, whole] : parameters) {
    const i64 found = index_of(line, whole, axis);
    if (found >= 0) return fmt::format("{} {} of {}", word_for(axis), found, other);
  }
  return fmt::format("a {} of no parameter", word_for(axis));
}

/// Describes a device's part that belongs elsewhere; empty if it is correct.
template <Number T>
std::string misplacement(const Parameters<T>& parameters, const std::string& name,
                         const MatrixPlacement& placement, int device, const Matrix<T>& held) {
  const Matrix<T> expected = cut(parameters.at(name), placement, device);
  if (held.rows() != expected.rows() || held.columns() != expected.columns()) return "";
  const Axis axis = axis_of(placement);
  const i64 first = placement.parts.empty() ? 0 : placement.parts[device].begin;
  for (i64 i = 0; i < held.extent(axis); ++i) {
    const Matrix<T> line = slice(held, axis, {i, i + 1});
    if (line == slice(expected, axis, {i, i + 1})) continue;
    return fmt::format("rank {} holds {} where {} {} of {} belongs", device,
                       origin(line, axis, name, parameters), word_for(axis), first + i, name);
  }
  return "";
}

template <Number T>
std::vector<std::string> misplacements(Device<T>& device, const System<T>& system,
                                       const Example<T>& example) {
  std::vector<std::string> findings;
  comm::Packer packer;
  for (const auto& [name, whole] : example.parameters) {
    const Matrix<T>* own = find(system.held(), name);
    packer.add(misplacement(example.parameters, name, system.placements().at(name),
                            device.device_id(), own == nullptr ? Matrix<T>() : *own));
  }
  const std::vector<std::string> all = device.census(packer.take());
  std::vector<comm::Unpacker> of_devices(all.begin(), all.end());
  for (size_t parameter = 0; parameter < example.parameters.size(); ++parameter) {
    for (comm::Unpacker& texts : of_devices) {
      std::string finding = texts.next();
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
std::string diagnosis(Device<T>& device, const System<T>& system, const Example<T>& example,
                      const Proof& proof, const Expectation& expected) {
  std::vector<std::string> findings = misplacements(device, system, example);
  if (proof.forward != expected.forward) {
    findings.push_back(count_finding("forward", proof.forward, expected.forward));
  }
  if (proof.backward != expected.backward) {
    findings.push_back(count_finding("backward", proof.backward, expected.backward));
  }
  if (proof.most_in_flight != expected.most_in_flight) {
    findings.push_back(fmt::format("the stages keep {} microbatches, expected {}",
                                   fmt::join(proof.most_in_flight, " "),
                                   fmt::join(expected.most_in_flight, " ")));
  }
  for (const ArrayVerdict& verdict : proof.arrays) {
    if (verdict.is_equal) continue;
    const bool is_gradient = verdict.name != "y" && verdict.name != kInputGradient;
    findings.push_back(
        fmt::format("{}{}: {}", is_gradient ? "gradient of " : "", verdict.name, verdict.finding));
  }
  // Wrong gradients already imply a wrong adjoint.
  if (findings.empty() && !(proof.adjoint <= tolerance<T>())) {
    findings.push_back(fmt::format("backward is not the adjoint of forward, by {}", proof.adjoint));
  }
  return fmt::format("{}", fmt::join(findings, "; "));
}

template std::string diagnosis(Device<Field>&, const System<Field>&, const Example<Field>&,
                               const Proof&, const Expectation&);
template std::string diagnosis(Device<double>&, const System<double>&, const Example<double>&,
                               const Proof&, const Expectation&);
template std::string diagnosis(Device<float>&, const System<float>&, const Example<float>&,
                               const Proof&, const Expectation&);
}  // namespace shardtool::tutorial

#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/plan/placement/program.h"
#include "tests/plan/placements.h"

namespace shardtool {

/// Builder of a program of bf16 matrices.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(mesh::Mesh mesh) { program_.mesh = std::move(mesh); }
  ProgramBuilder& operand(const std::string& name, Shape shape, std::vector<plan::Placement> on) {
    shapes_[name] = shape;
    program_.operands.push_back({name, std::move(shape), 2, std::move(on)});
    return *this;
  }
  ProgramBuilder& operand(const std::string& name, Shape shape, plan::Placement on) {
    return operand(name, std::move(shape), std::vector{on});
  }
  ProgramBuilder& matmul(const std::string& out, const std::string& x, const std::string& w) {
    return op("matmul", {x, w}, out, {shapes_.at(x)[0], shapes_.at(w)[1]},
              plan::matmul_rows(shapes_.at(x), shapes_.at(w)));
  }
  ProgramBuilder& add(const std::string& out, const std::string& a, const std::string& b) {
    return op("add", {a, b}, out, shapes_.at(a), plan::add_rows(shapes_.at(a), shapes_.at(b)));
  }
  ProgramBuilder& mul(const std::string& out, const std::string& a, const std::string& b) {
    return op("mul", {a, b}, out, shapes_.at(a), plan::mul_rows(shapes_.at(a), shapes_.at(b)));
  }
  ProgramBuilder& norm(const std::string& out, const std::string& x) {
    return op("norm", {x}, out, shapes_.at(x), plan::norm_rows(shapes_.at(x), 1, 0));
  }
  ProgramBuilder& relu(const std::string& out, const std::string& x) {
    return op("relu", {x}, out, shapes_.at(x), plan::nonlinear_rows(shapes_.at(x)));
  }
  /// Attention on whole heads: all three cut by columns, or all whole.
  ProgramBuilder& attend(const std::string& out, const std::string& q, const std::string& k,
                         const std::string& v) {
    return op("attention", {q, k, v}, out, shapes_.at(q),
              {{{kR, kR, kR}, kR}, {{kS1, kS1, kS1}, kS1}});
  }
  plan::Program build() const { return program_; }

 private:
  ProgramBuilder& op(std::string name, std::vector<std::string> in, const std::string& out,
                     Shape shape, std::vector<plan::OpRow> rows) {
    shapes_[out] = shape;
    program_.ops.push_back(
        {std::move(name), std::move(in), {out}, {std::move(shape)}, std::move(rows)});
    return *this;
  }
  plan::Program program_;
  std::map<std::string, Shape> shapes_;
};

}  // namespace shardtool

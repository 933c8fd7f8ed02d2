#pragma once

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "lib/api/transform.h"
#include "tests/support/checkpoint_files.h"

namespace shardtool::api {

using test::TempFolder;
using test::Tensor;
using test::Tensors;

template <class T>
T element(const Tensor& tensor, i64 at) {
  T value{};
  std::memcpy(&value, tensor.bytes.data() + at * static_cast<i64>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
Tensor tensor_of(const std::string& name, Dtype dtype, const Shape& shape,
                 const std::function<T(i64)>& value) {
  const i64 n = element_count(shape).value();
  Tensor tensor{{name, dtype, shape}, test::Bytes(static_cast<size_t>(n) * sizeof(T))};
  for (i64 i = 0; i < n; ++i) {
    const T v = value(i);
    std::memcpy(tensor.bytes.data() + static_cast<size_t>(i) * sizeof(T), &v, sizeof(T));
  }
  return tensor;
}

/// A matrix of decoded values.
struct Matrix {
  i64 rows = 0;
  i64 columns = 0;
  std::vector<double> values;
  double operator()(i64 r, i64 c) const { return values[static_cast<size_t>(r * columns + c)]; }
};

inline Matrix matrix(i64 rows, i64 columns, const std::function<double(i64, i64)>& value) {
  Matrix m{rows, columns, {}};
  for (i64 r = 0; r < rows; ++r) {
    for (i64 c = 0; c < columns; ++c) m.values.push_back(value(r, c));
  }
  return m;
}

/// Selects rows (axis 0) or columns (axis 1) of m; kZero inserts padding.
inline constexpr i64 kZero = -1;
inline Matrix taken(const Matrix& m, size_t axis, const std::vector<i64>& indices) {
  const i64 n = static_cast<i64>(indices.size());
  return matrix(axis == 0 ? n : m.rows, axis == 1 ? n : m.columns, [&](i64 r, i64 c) {
    const i64 at = indices[static_cast<size_t>(axis == 0 ? r : c)];
    if (at == kZero) return 0.0;
    return axis == 0 ? m(at, c) : m(r, at);
  });
}

inline std::vector<i64> range(i64 begin, i64 end, i64 padding = 0) {
  std::vector<i64> indices;
  for (i64 i = begin; i < end; ++i) indices.push_back(i);
  indices.insert(indices.end(), static_cast<size_t>(padding), kZero);
  return indices;
}

/// A checkpoint with one cut weight and its split.
class Quantised {
 public:
  /// Cuts axis "x" of the weight with these dims over `tp` devices, and checks the output.
  Quantised(const Tensors& tensors, const std::string& quantization, const std::string& dims,
            i64 tp, const std::string& straddle = "error");

  Tensors part(i64 rank) const {
    return test::read_tensors(folder_ / "parts", fmt::format("model-rank-{}-", rank));
  }
  const TransformReport& report() const { return report_; }

  /// Checks merge(split(x)) = x and that diff(whole, parts) is empty.
  void check_round_trip() const;
  /// Checks that a split of these ranks, or of all, is complete when it is run again with resume.
  void check_complete(std::vector<i64> ranks = {}) const;
  /// Checks reshard(split(x, A), B) = split(x, B), file by file.
  void check_reshard(i64 tp) const;

 private:
  /// Checks that the output is complete and correct by its own manifest.
  void check_has_no_findings() const;
  std::string parts() const { return folder_ / "parts"; }

  TempFolder folder_;
  Tensors tensors_;
  SplitOptions splitting_;
  TransformReport report_;
};

}  // namespace shardtool::api

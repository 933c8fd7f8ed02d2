#pragma once

#include "kernels/decode/element.h"

namespace shardtool::kernels {

/// to_doubles and to_floats as a work.
template <class T>
struct DecodeNumbers {
  Dtype dtype = Dtype::kBF16;
  const std::byte* elements = nullptr;
  i64 n = 0;
  T* values = nullptr;

  SHARDTOOL_BOTH i64 count() const { return n; }
  SHARDTOOL_BOTH void operator()(i64 i) const { values[i] = number_at<T>(dtype, elements, i); }
};

/// to_residues as a work; width is bits(dtype) / 8, a table that GPU code cannot read.
struct DecodeResidues {
  Dtype dtype = Dtype::kBF16;
  i64 width = 2;
  NumberMap map = NumberMap::kBits;
  const std::byte* elements = nullptr;
  i64 n = 0;
  Field* residues = nullptr;

  SHARDTOOL_BOTH i64 count() const { return n; }
  SHARDTOOL_BOTH void operator()(i64 i) const {
    residues[i] = residue_at(dtype, width, map, elements, i);
  }
};

}  // namespace shardtool::kernels

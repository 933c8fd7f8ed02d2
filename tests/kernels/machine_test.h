#pragma once

#include <doctest/doctest.h>

#include "tests/kernels/byte_laws.h"
#include "tests/kernels/op_laws.h"
#include "tests/kernels/product_laws.h"
#include "tests/kernels/recurrence_laws.h"

/// All laws of one machine, as checks of the calling test.
namespace shardtool::kernels {

template <class Machine>
void check_bytes() {
  CHECK(rc::check("strided copies", copy_law<Machine>));
  CHECK(rc::check("strided copies of many loops", deep_copy_law<Machine>));
  CHECK(rc::check("strided copies of rows", wide_copy_law<Machine>));
  CHECK(rc::check("fills of 1", fill_law<Machine, std::uint8_t>));
  CHECK(rc::check("fills of 2", fill_law<Machine, std::uint16_t>));
  CHECK(rc::check("fills of 4", fill_law<Machine, std::uint32_t>));
  CHECK(rc::check("fills of 8", fill_law<Machine, std::uint64_t>));
  for (const Dtype dtype : computable_dtypes()) {
    decode_law<Machine>(dtype, [](Dtype wrong, const char* what) {
      FAIL_CHECK((std::string(to_string(wrong)) + " as " + what));
    });
  }
  for (const Dtype dtype : {Dtype::kBF16, Dtype::kF16, Dtype::kF32}) {
    CHECK(encodes_alike<Machine>(dtype));
  }
}

template <class Machine>
void check_products() {
  CHECK(rc::check("rows of residues", residue_rows_law<Machine>));
  CHECK(rc::check("columns of residues", residue_columns_law<Machine>));
  CHECK(rc::check("rows of doubles", real_rows_law<Machine, double>));
  CHECK(rc::check("rows of floats", real_rows_law<Machine, float>));
  CHECK(rc::check("columns of doubles", real_columns_law<Machine, double>));
  CHECK(rc::check("columns of floats", real_columns_law<Machine, float>));
  for (const LongCase& c : kLongCases) {
    CHECK(long_rows_agree<Machine>(c));
    CHECK(long_columns_agree<Machine>(c));
  }
}

template <class Machine, class T>
void check_ops() {
  CHECK(rc::check("norms", norm_law<Machine, T>));
  CHECK(rc::check("rotations", rotate_law<Machine, T>));
  CHECK(rc::check("attention", attend_law<Machine, T>));
  CHECK(rc::check("index of positions", index_law<Machine, T>));
  CHECK(rc::check("convolutions", convolve_law<Machine, T>));
  CHECK(rc::check("recurrences", recur_law<Machine, T>));
  CHECK(rc::check("activations", activate_law<Machine, T>));
  CHECK(rc::check("scales of columns", scale_law<Machine, T>));
  CHECK(rc::check("sums and products of arrays", combine_law<Machine, T>));
  CHECK(rc::check("sums with one row", add_to_rows_law<Machine, T>));
  CHECK(rc::check("rows times weights", weigh_law<Machine, T>));
  if constexpr (std::is_same_v<T, Field>) {
    CHECK(rc::check("routers to all experts", route_to_all_law<Machine>));
  } else {
    CHECK(rc::check("routers", route_law<Machine, T>));
    CHECK(rc::check("root mean squares", square_law<Machine, T>));
  }
  CHECK(rc::check("sums of ranks", fold_law<Machine, T>));
  CHECK(rc::check("comparisons", compare_law<Machine, T>));
}

}  // namespace shardtool::kernels

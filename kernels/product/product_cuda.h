#pragma once

#include "kernels/device/device.h"
#include "kernels/product/product.h"

namespace shardtool::kernels::gpu {

/// The products of product.h on device pointers. They give the same bits as on the CPU, floats
/// included: the summation order is part of the contract. The bytes of w are aligned to its
/// elements. Asynchronous; throw kDeviceFailed if the launch fails.
void multiply_rows(const StoredMatrix& w, NumberMap map, RowView<const Field> x, RowView<Field> y,
                   Stream stream);
void multiply_rows(const StoredMatrix& w, RowView<const double> x, RowView<double> y,
                   Stream stream);
void multiply_rows(const StoredMatrix& w, RowView<const float> x, RowView<float> y, Stream stream);

void add_columns(const StoredMatrix& w, NumberMap map, RowView<const Field> x, RowView<Field> y,
                 Stream stream);
void add_columns(const StoredMatrix& w, RowView<const double> x, RowView<double> y, Stream stream);
void add_columns(const StoredMatrix& w, RowView<const float> x, RowView<float> y, Stream stream);

}  // namespace shardtool::kernels::gpu

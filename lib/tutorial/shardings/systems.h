#pragma once

#include <memory>
#include <vector>

#include "lib/tutorial/shardings/system.h"

namespace shardtool::tutorial {

/// Factories, each for one sharding of y = relu(x W0 + b0) W1 + b1 over the devices of a launch.
/// Weights are [in, out], so "column" cuts a layer's outputs and "row" its inputs. `device` must
/// outlive the system. Biases are optional everywhere.

/// Everything on every device: the reference. Any number of layers.
template <Number T>
std::unique_ptr<System<T>> unsharded(Device<T>& device);

///  x --W0[:, H]--> h[:, H] --W1[H, :]--> partial y --all_reduce--> y          H: hidden, cut
/// forward: all_reduce of y; backward: all_reduce of dx. b1 is replicated, added after the sum.
template <Number T>
std::unique_ptr<System<T>> column_row(Device<T>& device);

///  x[:, I] --W0[I, :]--> partial z --all_reduce--> h --W1[:, O]--> y[:, O] --all_gather--> y
/// forward: all_reduce of z, all_gather of y; backward: all_reduce of dh. x is given whole, dx is
/// left cut by columns. The masks are those of the reduced z.
template <Number T>
std::unique_ptr<System<T>> row_column(Device<T>& device);

/// Reduction of the gradients of a batch's parts.
enum class GradientReduction {
  kSum,      ///< sum over the whole batch, equal to one device's result
  kAverage,  ///< that divided by the number of devices, not by samples, even if batches differ
};

template <Number T>
Matrix<T> reduced(Matrix<T> sum, GradientReduction reduction, int devices) {
  if (reduction == GradientReduction::kSum) return sum;
  for (T& value : sum.values()) value = divided(value, devices);
  return sum;
}

/// The batch is cut, the parameters are replicated. backward: one all_reduce per parameter.
template <Number T>
std::unique_ptr<System<T>> data_parallel(Device<T>& device, GradientReduction reduction);

/// The batch and every parameter are cut: W0 by rows, W1 and biases by columns. forward: one
/// all_gather per parameter; backward: one per weight again, since whole weights are not kept, and
/// one reduce_scatter per gradient.
template <Number T>
std::unique_ptr<System<T>> fully_sharded(Device<T>& device, GradientReduction reduction);

/// column_row with x and y cut by rows (the sequence). forward: all_gather of x, reduce_scatter of
/// y; backward: all_gather of dy, reduce_scatter of dx, all_reduce of the gradient of the
/// replicated b1. The gathered x is kept for backward, not gathered again.
template <Number T>
std::unique_ptr<System<T>> sequence_parallel(Device<T>& device);

/// Expert of every row of a batch.
using Assignment = std::vector<i64>;

/// One two-layer model per expert, "expert_<e>/layer_0/weights", ...; row t of x goes through
/// expert assignment[t]. Everything on every device.
template <Number T>
std::unique_ptr<System<T>> unsharded_experts(Device<T>& device, Assignment assignment);

/// The batch and the experts are distributed. forward: all_to_all of the rows to their experts'
/// devices and all_to_all back; backward the same with dy and dx. Batches have assignment.size()
/// rows (kShapeMismatch); a device or an expert may have no rows.
template <Number T>
std::unique_ptr<System<T>> expert_parallel(Device<T>& device, Assignment assignment);

}  // namespace shardtool::tutorial

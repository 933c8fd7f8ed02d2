#pragma once

#include "kernels/device/accelerator.h"
#include "lib/tutorial/layers/matrix.h"

namespace shardtool::tutorial {

/// Returns a product that runs on an accelerator, which must outlive it, and has the bits of
/// times(): every sum is in the order of the inner axis. A call copies both factors there, waits
/// and copies the result back. It throws kShapeMismatch, and kDeviceFailed if the accelerator
/// fails. One thread at a time may call it.
template <Number T>
Product<T> product_on(kernels::Accelerator& accelerator);

}  // namespace shardtool::tutorial

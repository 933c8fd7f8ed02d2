#pragma once

#include <nanobind/nanobind.h>

#include "lib/base/shape.h"

namespace shardtool::python {

/// Box of a tensor that a subscript names.
struct IndexedBox {
  Shape begin;
  Shape sizes;
  Shape shape;  ///< of the result: without the axes that an integer selects
};

/// Understands integers, slices with step 1 and one `...`, as numpy does. Throws IndexError for
/// integers outside of the tensor and for too many axes, TypeError and ValueError for the rest.
IndexedBox box_of(const Shape& shape, nanobind::handle subscript);

}  // namespace shardtool::python

#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <span>

#include "lib/base/dtype.h"
#include "lib/base/shape.h"

namespace shardtool::python {

/// Elements in memory, row-major, which Python sees by the buffer protocol and DLPack.
class Tensor {
 public:
  /// The memory is not initialised. Throws kLimit if there is none.
  Tensor(Dtype dtype, Shape shape, i64 bytes);
  /// Takes memory that holds the elements.
  Tensor(Dtype dtype, Shape shape, i64 bytes, std::shared_ptr<std::byte> memory);

  Dtype dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }  ///< in bytes
  i64 bytes() const { return bytes_; }
  std::byte* data() const { return memory_.get(); }
  std::span<std::byte> span() const { return {data(), static_cast<size_t>(bytes_)}; }

 private:
  Dtype dtype_;
  Shape shape_;
  Shape strides_;
  i64 bytes_;
  std::shared_ptr<std::byte> memory_;
};

/// Returns the method of Tensor that makes what the framework has; empty for None. Throws kUsage
/// for other frameworks than numpy and torch.
std::string converter_of(nanobind::handle framework);

/// The tensor as "np" and "pt" have it, or itself for None. Throws kUsage for other frameworks.
nanobind::object in_framework(Tensor tensor, nanobind::handle framework);

void bind_tensor(nanobind::module_& module);

}  // namespace shardtool::python

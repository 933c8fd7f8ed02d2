#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/checked.h"
#include "lib/base/shape.h"
#include "lib/mesh/mesh.h"

namespace shardtool::python {

inline nanobind::str text(std::string_view value) {
  return nanobind::str(value.data(), value.size());
}

/// A path in the system's bytes. Bytes that are no UTF-8 are lone surrogates in Python's str, as
/// os.fsdecode has them.
struct Path {
  std::string bytes;
};
std::vector<std::string> bytes_of(std::vector<Path> paths);

nanobind::tuple tuple_of(const Shape& shape);
/// Subscript of a box: a tuple of slices.
nanobind::tuple slices_of(const Shape& begin, const Shape& sizes);

/// {"dp": 2, "tp": 4}, the slowest axis first.
nanobind::dict to_dict(const mesh::Mesh& mesh);
/// From such a dict, or from "dp=2,tp=4". Throws TypeError, kUsage and kMesh.
mesh::Mesh to_mesh(nanobind::handle mesh);

/// Integers that are accepted, the ends included.
struct Limits {
  i64 least = 1;
  i64 most = std::numeric_limits<i64>::max();
};
inline constexpr Limits kCount{1, std::numeric_limits<std::int32_t>::max()};
inline constexpr Limits kSize{};  ///< in bytes

/// Returns the integer of an int, or of what Python converts to one without loss (numpy's). `name`
/// is that of the argument. Throws TypeError for others and for bool, kUsage outside of the limits.
i64 to_integer(const std::string& name, nanobind::handle value, Limits limits);

/// Returns the text of a str. Throws TypeError, with `name`, for others.
std::string to_text(const std::string& name, nanobind::handle value);

/// Keyword arguments of a command. Absent ones and None keep the default. Values of another type
/// throw TypeError, with the keyword's name.
class Keywords {
 public:
  explicit Keywords(nanobind::dict values) : values_(std::move(values)) {}

  nanobind::object find(const char* name) const {
    return values_.contains(name) ? nanobind::object(values_[name]) : nanobind::none();
  }
  /// Texts and paths throw kUsage if they are empty.
  void set(const char* name, bool& field) const;
  void set(const char* name, double& field) const;
  void set(const char* name, std::string& field) const;
  void set(const char* name, std::vector<std::string>& field) const;
  void set_path(const char* name, std::string& field) const;
  /// Throws kUsage outside of the limits.
  template <class Integer>
  void set(const char* name, Integer& field, Limits limits) const {
    const nanobind::object value = find(name);
    if (!value.is_none()) field = static_cast<Integer>(to_integer(name, value, limits));
  }

 private:
  nanobind::dict values_;
};

}  // namespace shardtool::python

namespace nanobind::detail {

template <>
struct type_caster<shardtool::python::Path> {
  NB_TYPE_CASTER(shardtool::python::Path, const_name("str"))

  bool from_python(handle source, std::uint8_t /*flags*/, cleanup_list* /*cleanup*/) noexcept {
    if (!isinstance<str>(source)) return false;
    const object encoded = steal(PyUnicode_EncodeFSDefault(source.ptr()));
    if (!encoded.is_valid()) {
      PyErr_Clear();
      return false;
    }
    const auto given = borrow<nanobind::bytes>(encoded);
    value.bytes = std::string(given.c_str(), given.size());
    return true;
  }
  static handle from_cpp(const shardtool::python::Path& path, rv_policy /*policy*/,
                         cleanup_list* /*cleanup*/) noexcept {
    return PyUnicode_DecodeFSDefaultAndSize(path.bytes.data(), std::ssize(path.bytes));
  }
};

}  // namespace nanobind::detail

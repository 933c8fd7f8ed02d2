#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

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

nanobind::tuple tuple_of(const Shape& shape);

/// {"dp": 2, "tp": 4}, the slowest axis first.
nanobind::dict to_dict(const mesh::Mesh& mesh);
/// From such a dict, or from "dp=2,tp=4". Throws kUsage and kMesh.
mesh::Mesh to_mesh(nanobind::handle mesh);

/// Keyword arguments of a command. Absent ones and None keep the default.
class Keywords {
 public:
  explicit Keywords(nanobind::dict values) : values_(std::move(values)) {}

  nanobind::object find(const char* name) const {
    return values_.contains(name) ? nanobind::object(values_[name]) : nanobind::none();
  }
  template <class Field>
  void set(const char* name, Field& field) const {
    const nanobind::object value = find(name);
    if (!value.is_none()) field = nanobind::cast<Field>(value);
  }

 private:
  nanobind::dict values_;
};

}  // namespace shardtool::python

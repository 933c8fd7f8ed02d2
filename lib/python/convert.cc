#include "lib/python/convert.h"

#include <fmt/format.h>

#include "lib/base/error.h"

namespace nb = nanobind;

namespace shardtool::python {
namespace {

constexpr i64 kLargest = std::numeric_limits<i64>::max();

std::string name_of_type(nb::handle value) {
  return nb::cast<std::string>(value.type().attr("__name__"));
}

nb::builtin_exception wrong_type(const std::string& name, const char* type, nb::handle value) {
  return nb::type_error(
      fmt::format("{} must be {}, not {}", name, type, name_of_type(value)).c_str());
}

}  // namespace

i64 to_integer(const std::string& name, nb::handle value, Limits limits) {
  if (nb::isinstance<nb::bool_>(value) || PyIndex_Check(value.ptr()) == 0)
    throw wrong_type(name, "int", value);
  const nb::object whole = nb::steal(PyNumber_Index(value.ptr()));
  if (!whole.is_valid()) throw nb::python_error();
  int overflow = 0;
  const i64 number = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
  if (overflow == 0 && number >= limits.least && number <= limits.most) return number;
  const std::string wanted = limits.most == kLargest && overflow <= 0
                                 ? fmt::format("of at least {}", limits.least)
                                 : fmt::format("from {} to {}", limits.least, limits.most);
  throw Error(ErrorCode::kUsage,
              fmt::format("{}={} is not a whole number {}", name, nb::str(whole).c_str(), wanted));
}

nb::tuple tuple_of(const Shape& shape) {
  nb::list values;
  for (const i64 extent : shape) values.append(extent);
  return nb::tuple(values);
}

nb::dict to_dict(const mesh::Mesh& mesh) {
  nb::dict axes;
  for (const mesh::MeshAxis& axis : mesh.axes()) axes[text(axis.name)] = axis.size;
  return axes;
}

mesh::Mesh to_mesh(nb::handle mesh) {
  if (nb::isinstance<nb::str>(mesh)) return mesh::parse_mesh(nb::cast<std::string>(mesh));
  if (!nb::isinstance<nb::dict>(mesh)) {
    throw Error(ErrorCode::kUsage, "a mesh is a dict or a text")
        .help("for example {\"dp\": 2, \"tp\": 4} or \"dp=2,tp=4\", the slowest axis first");
  }
  std::vector<mesh::MeshAxis> axes;
  for (const auto [name, size] : nb::borrow<nb::dict>(mesh)) {
    axes.push_back({nb::cast<std::string>(name), nb::cast<i64>(size)});
  }
  return mesh::Mesh(std::move(axes));
}

}  // namespace shardtool::python

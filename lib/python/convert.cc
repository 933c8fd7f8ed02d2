#include "lib/python/convert.h"

#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/base/text.h"

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

/// Refuses an empty text, which would count as none.
std::string filled(const char* name, std::string text) {
  if (!text.empty()) return text;
  throw Error(ErrorCode::kUsage, fmt::format("{} is empty", name)).help("leave it out, or None");
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

std::string to_text(const std::string& name, nb::handle value) {
  if (!nb::isinstance<nb::str>(value)) throw wrong_type(name, "str", value);
  Py_ssize_t size = 0;
  const char* const utf8 = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (utf8 == nullptr) throw nb::python_error();
  return {utf8, static_cast<size_t>(size)};
}

void Keywords::set(const char* name, bool& field) const {
  const nb::object value = find(name);
  if (value.is_none()) return;
  if (!nb::isinstance<nb::bool_>(value)) throw wrong_type(name, "bool", value);
  field = nb::cast<bool>(value);
}

void Keywords::set(const char* name, double& field) const {
  const nb::object value = find(name);
  if (value.is_none()) return;
  if (nb::isinstance<nb::bool_>(value) || !nb::try_cast(value, field))
    throw wrong_type(name, "float", value);
}

void Keywords::set(const char* name, std::string& field) const {
  const nb::object value = find(name);
  if (!value.is_none()) field = filled(name, to_text(name, value));
}

void Keywords::set(const char* name, std::vector<std::string>& field) const {
  const nb::object values = find(name);
  if (values.is_none()) return;
  field.clear();
  for (const nb::handle value : values) {
    field.push_back(to_text(fmt::format("{}[{}]", name, field.size()), value));
  }
}

void Keywords::set_path(const char* name, std::string& field) const {
  const nb::object value = find(name);
  if (!value.is_none()) field = filled(name, nb::cast<Path>(value).bytes);
}

std::vector<std::string> bytes_of(std::vector<Path> paths) {
  std::vector<std::string> all;
  for (Path& path : paths) all.push_back(std::move(path.bytes));
  return all;
}

nb::tuple tuple_of(const Shape& shape) {
  nb::list values;
  for (const i64 extent : shape) values.append(extent);
  return nb::tuple(values);
}

nb::tuple slices_of(const Shape& begin, const Shape& sizes) {
  nb::list slices;
  for (size_t a = 0; a < begin.size(); ++a) {
    slices.append(nb::slice(nb::int_(begin[a]), nb::int_(begin[a] + sizes[a]), nb::none()));
  }
  return nb::tuple(slices);
}

nb::dict to_dict(const mesh::Mesh& mesh) {
  nb::dict axes;
  for (const mesh::MeshAxis& axis : mesh.axes()) axes[text(axis.name)] = axis.size;
  return axes;
}

mesh::Mesh to_mesh(nb::handle mesh) {
  if (nb::isinstance<nb::str>(mesh)) return mesh::parse_mesh(to_text("mesh", mesh));
  if (!nb::isinstance<nb::dict>(mesh)) throw wrong_type("mesh", "dict or str", mesh);
  if (nb::len(mesh) == 0) {
    throw Error(ErrorCode::kUsage, "mesh has no axes")
        .help("leave it out, or give the devices along each axis, such as mesh={\"tp\": 4}");
  }
  std::vector<mesh::MeshAxis> axes;
  for (const auto [key, size] : nb::borrow<nb::dict>(mesh)) {
    const std::string name = to_text("the name of a mesh axis", key);
    axes.push_back({name, to_integer(fmt::format("mesh[{}]", quote_for_message(name)), size,
                                     {std::numeric_limits<i64>::min(), kLargest})});
  }
  return mesh::Mesh(std::move(axes));
}

}  // namespace shardtool::python

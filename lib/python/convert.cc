#include "lib/python/convert.h"

#include "lib/base/error.h"

namespace nb = nanobind;

namespace shardtool::python {

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

#include "tests/layouts/tables.h"

#include <algorithm>
#include <fstream>

#include "kernels/xxh3/xxh3.h"

namespace shardtool::test {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<fs::path> tables(const std::string& layout, const std::string& kind) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(SHARDTOOL_SOURCE_DIR) /
                                                            "tests" / "layouts" / kind / layout)) {
    if (entry.is_regular_file()) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

Tensors draw(const json& tensors) {
  Tensors drawn;
  for (const auto& [name, row] : tensors.items()) {
    drawn[name] = distinct_tensor(
        {name, parse_dtype(row.at(0).get<std::string>()).value(), row.at(1).get<Shape>()});
  }
  return drawn;
}

api::MappingChoice choice_of(const json& flags) {
  api::MappingChoice choice;
  for (size_t i = 0; i + 1 < flags.size(); i += 2) {
    const std::string value = flags.at(i + 1);
    if (flags.at(i) == "--mesh") choice.mesh = mesh::parse_mesh(value);
    if (flags.at(i) == "--axes") choice.layout = value;
  }
  return choice;
}

Tensors write_model(const std::string& folder, const json& table) {
  Tensors whole = draw(table.at("tensors"));
  write_checkpoint(folder, whole);
  std::ofstream(folder + "/config.json") << table.at("config").dump();
  return whole;
}

json rows_of(const Tensors& tensors) {
  json rows = json::object();
  for (const auto& [name, tensor] : tensors) {
    rows[name] = {std::string(to_string(tensor.spec.dtype)), tensor.spec.shape,
                  kernels::xxh3_hex(std::as_bytes(std::span(tensor.bytes))).substr(0, 16)};
  }
  return rows;
}

}  // namespace shardtool::test

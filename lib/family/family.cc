#include "lib/family/family.h"

#include <algorithm>

#include "lib/base/json_reader.h"
#include "lib/family/embedded.h"

namespace shardtool::family {
namespace {

constexpr int kMaxDepth = 16;

std::vector<std::string> read_texts(JsonReader& in) {
  std::vector<std::string> texts;
  if (in.kind() == JsonKind::kString) return {in.string()};
  in.begin_array();
  while (in.next_element()) texts.push_back(in.string());
  return texts;
}

Family::When read_when(JsonReader& in) {
  Family::When when;
  const auto config = [&] {
    in.begin_object();
    std::string path;
    while (in.next_key(path)) {
      auto& [name, values] = when.config.emplace_back(path, std::vector<std::string>());
      in.begin_array();
      while (in.next_element()) values.emplace_back(in.raw());
    }
  };
  in.object({{"architectures", [&] { when.architectures = read_texts(in); }, false},
             {"model_type", [&] { when.model_types = read_texts(in); }, false},
             {"tensors_present", [&] { when.tensors_present = read_texts(in); }, false},
             {"config", config, false}});
  return when;
}

/// Reads "extends": families for both halves, or {"tensors": families, "ops": families}.
void read_extends(JsonReader& in, Family& family) {
  if (in.kind() != JsonKind::kObject) {
    family.extends_tensors = read_texts(in);
    family.extends_ops = family.extends_tensors;
    return;
  }
  in.object({{"tensors", [&] { family.extends_tensors = read_texts(in); }, false},
             {"ops", [&] { family.extends_ops = read_texts(in); }, false}});
}

Family read_family(const EmbeddedFile& file) {
  Family family{file.name, file.text, {}, {}, {}, false, {}, {}, {}};
  JsonReader in(file.text, {"lib/family/" + std::string(file.name) + ".json", ErrorCode::kInternal},
                kMaxDepth);
  std::optional<std::vector<std::string>> model_types;
  in.object({{"description", [&] { family.description = in.string(); }},
             {"computes", [&] { family.computes = in.string(); }, false},
             {"source",
              [&] {
                in.skip();
                family.has_ops = true;
              },
              false},
             {"extends", [&] { read_extends(in, family); }, false},
             {"when", [&] { family.when = read_when(in); }, false},
             {"model_types", [&] { model_types = read_texts(in); }, false}});
  if (!family.has_ops) return family;
  if (model_types) {
    family.op_model_types = std::move(*model_types);
  } else if (family.when) {
    family.op_model_types = family.when->model_types;
  }
  return family;
}

std::vector<Family> read_families() {
  std::vector<Family> families;
  for (const EmbeddedFile& file : embedded_families()) families.push_back(read_family(file));
  return families;
}

}  // namespace

std::span<const Family> families() {
  static const std::vector<Family> all = read_families();
  return all;
}

const Family* find_family(std::string_view name) {
  const auto all = families();
  const auto found = std::ranges::lower_bound(all, name, {}, &Family::name);
  return found != all.end() && found->name == name ? &*found : nullptr;
}

}  // namespace shardtool::family

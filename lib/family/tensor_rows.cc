#include "lib/family/tensor_rows.h"

#include <algorithm>
#include <ranges>

#include "lib/family/name_pattern.h"

namespace shardtool::family {
namespace {

/// The name of a weight without its prefix, and the placeholders that the prefix has. A stack of
/// layers may define its own prefix: then they are unknown.
struct Wanted {
  std::string rest;
  std::optional<std::vector<std::string>> placeholders_before;
};

Wanted wanted_of(std::string_view weight, const Prefixes& prefixes) {
  if (weight.ends_with('?')) weight.remove_suffix(1);
  const size_t slash = weight.find('/');
  if (slash == weight.npos) return {std::string(weight), std::nullopt};
  Wanted wanted{std::string(weight.substr(slash + 1)), std::nullopt};
  const auto prefix = prefixes.find(weight.substr(0, slash));
  if (prefix != prefixes.end()) wanted.placeholders_before = placeholders(prefix->second);
  return wanted;
}

bool covers(const std::string& name, const std::string& rest, const Wanted& wanted) {
  if (name == rest) return true;
  if (!name.ends_with("." + rest)) return false;
  const auto before = std::string_view(name).substr(0, name.size() - rest.size());
  return !wanted.placeholders_before || placeholders(before) == *wanted.placeholders_before;
}

}  // namespace

TensorRows::TensorRows(std::string_view family) : prefixes_(prefixes_of(family)) {
  add(family);
}

void TensorRows::add(std::string_view family) {
  const Json& file = family_file(family);
  if (const auto tensors = file.find("tensors"); tensors != file.end()) {
    const Prefixes prefixes = prefixes_of(family);
    for (const auto& [id, tensor] : tensors->items()) {
      Row row;
      if (const auto dims = tensor.find("dims"); dims != tensor.end()) row.dims = &*dims;
      for (const std::string& pattern : texts_of(tensor.at("name"))) {
        for (std::string& name : alternatives(full_name(pattern, prefixes)))
          row.names.push_back(std::move(name));
      }
      rows_.push_back(std::move(row));
    }
  }
  for (const std::string& extended : find_family(family)->extends_tensors | std::views::reverse)
    add(extended);
}

const Json* TensorRows::dims(std::string_view weight) const {
  const Wanted wanted = wanted_of(weight, prefixes_);
  const std::vector<std::string> all = alternatives(wanted.rest);
  for (const Row& row : rows_) {
    const bool is_covered = std::ranges::all_of(all, [&](const std::string& rest) {
      return std::ranges::any_of(
          row.names, [&](const std::string& name) { return covers(name, rest, wanted); });
    });
    if (is_covered) return row.dims;
  }
  return nullptr;
}

}  // namespace shardtool::family

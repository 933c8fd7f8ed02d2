#include "lib/mapping/tensor_classes.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/mapping/document/name_form.h"
#include "lib/mapping/facts.h"

namespace shardtool::mapping {
namespace {

constexpr const char* kOther = "other";

/// The order in which reports list them.
constexpr const char* kOrder[] = {"embedding", "attention", "mlp",  "experts",
                                  "norms",     "scales",    "head", kOther};

std::vector<std::function<bool(std::string_view)>> filters(const nlohmann::json& globs) {
  std::vector<std::function<bool(std::string_view)>> all;
  for (const auto& glob : globs) all.push_back(glob_filter(glob.get<std::string>()));
  return all;
}

template <class Filters>
bool any(const Filters& filters, std::string_view name) {
  return std::any_of(filters.begin(), filters.end(),
                     [name](const auto& matches) { return matches(name); });
}

}  // namespace

TensorClasses::TensorClasses(const std::vector<OwnClass>& own) {
  for (const OwnClass& mine : own) {
    if (mine.name.empty() || mine.name == kOther) {
      throw Error(ErrorCode::kUsage, "a class of one's own has no name, or is called \"other\"")
          .help("write NAME=GLOB, like router=**.mlp.gate.weight");
    }
    own_.emplace_back(number_of(mine.name), glob_filter(mine.glob));
  }
  for (const char* name : kOrder) number_of(name);
  const nlohmann::json known = facts("tensor_classes");
  for (const auto& entry : known.at("classes")) {
    entries_.push_back({number_of(entry.at("class").get<std::string>()), filters(entry.at("match")),
                        filters(entry.value("except", nlohmann::json::array()))});
  }
}

int TensorClasses::number_of(const std::string& name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<int>(found - names_.begin());
  names_.push_back(name);
  return static_cast<int>(names_.size()) - 1;
}

int TensorClasses::built_in(std::string_view form) const {
  for (const Entry& entry : entries_) {
    if (any(entry.match, form) && !any(entry.except, form)) return entry.number;
  }
  return static_cast<int>(names_.size()) - 1;
}

int TensorClasses::of(const std::string& tensor) {
  for (const auto& [number, matches] : own_) {
    if (matches(tensor)) return number;
  }
  const std::string form = name_form(tensor);
  return known_forms_.of(form, [&] { return built_in(form); });
}

}  // namespace shardtool::mapping

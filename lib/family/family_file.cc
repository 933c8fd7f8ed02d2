#include "lib/family/family_file.h"

#include <fmt/format.h>

#include <mutex>

#include "lib/base/error.h"

namespace shardtool::family {

const Json& family_file(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, Json, std::less<>> parsed;
  const std::lock_guard lock(mutex);
  if (const auto known = parsed.find(name); known != parsed.end()) return known->second;
  const Family* family = find_family(name);
  if (family == nullptr) throw Error(ErrorCode::kInternal, fmt::format("no family '{}'", name));
  return parsed.emplace(std::string(name), Json::parse(family->text)).first->second;
}

Prefixes prefixes_of(std::string_view name) {
  const Family* family = find_family(name);
  if (family == nullptr) throw Error(ErrorCode::kInternal, fmt::format("no family '{}'", name));
  Prefixes prefixes;
  for (const std::string& extended : family->extends_ops) {
    for (auto& [key, text] : prefixes_of(extended)) prefixes.insert_or_assign(key, text);
  }
  const Json& file = family_file(name);
  if (const auto own = file.find("prefix"); own != file.end()) {
    for (const auto& [key, text] : own->items())
      prefixes.insert_or_assign(key, text.get<std::string>());
  }
  return prefixes;
}

std::string full_name(std::string_view name, const Prefixes& prefixes) {
  const size_t slash = name.find('/');
  if (slash == name.npos) return std::string(name);
  const auto prefix = prefixes.find(name.substr(0, slash));
  if (prefix == prefixes.end()) return std::string(name);
  return prefix->second + std::string(name.substr(slash + 1));
}

std::vector<std::string> texts_of(const Json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  return value.get<std::vector<std::string>>();
}

}  // namespace shardtool::family

#include "lib/format/missing_place.h"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/store/local/tree.h"
#include "lib/store/reader.h"

namespace shardtool::format {
namespace {

namespace fs = std::filesystem;

/// A path, divided where it stops to exist.
struct DividedPath {
  fs::path there;  ///< empty: the current folder
  std::string missing;
  fs::path rest;
};

DividedPath divide(const fs::path& path) {
  DividedPath divided;
  for (const fs::path& part : path) {
    std::error_code error;
    if (!divided.missing.empty()) {
      divided.rest /= part;
    } else if (fs::exists(divided.there / part, error)) {
      divided.there /= part;
    } else {
      divided.missing = part.string();
    }
  }
  return divided;
}

std::vector<std::string> names_beside(const DividedPath& divided) {
  try {
    return store::names_in(divided.there.empty() ? "." : divided.there.string());
  } catch (const Error&) {
    return {};  // a folder that cannot be listed has no names to suggest
  }
}

}  // namespace

std::string advice_on_missing(const std::string& path) {
  if (store::is_remote(path)) return "";
  const DividedPath divided = divide(path);
  if (divided.missing.empty()) return "";
  for (const std::string& name : near_misses(divided.missing, names_beside(divided))) {
    fs::path similar = divided.there / name;
    if (!divided.rest.empty()) similar /= divided.rest;
    std::error_code error;
    if (fs::exists(similar, error))
      return fmt::format("did you mean '{}'?", quote_for_message(similar.string()));
  }
  if (divided.rest.empty()) return "";
  return fmt::format(
      "there is no '{}' in {}", quote_for_message(divided.missing),
      divided.there.empty() ? "the current folder" : quote_for_message(divided.there.string()));
}

}  // namespace shardtool::format

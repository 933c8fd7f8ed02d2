#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lib/family/family.h"

namespace shardtool::family {

/// Keeps the order of keys.
using Json = nlohmann::ordered_json;

/// The parsed file of a family. Parsed once. Throws kInternal where there is no such family.
const Json& family_file(std::string_view name);

/// The prefixes of a family by name, its own over those of the families whose ops it extends.
using Prefixes = std::map<std::string, std::string, std::less<>>;
Prefixes prefixes_of(std::string_view name);

/// Replaces a leading "<prefix name>/": "layer/mlp.up.weight" becomes
/// "layers.<layer>.mlp.up.weight". Other names stay as they are.
std::string full_name(std::string_view name, const Prefixes& prefixes);

/// The strings of a value that is one string or a list of them.
std::vector<std::string> texts_of(const Json& value);

}  // namespace shardtool::family

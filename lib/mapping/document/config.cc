#include "lib/mapping/document/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/base/error.h"
#include "lib/base/strict_json.h"
#include "lib/base/text.h"
#include "lib/store/reader.h"

namespace shardtool::mapping {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr i64 kMaxConfigBytes = 64 << 20;
constexpr int kMaxConfigDepth = 64;
constexpr const char* kQuantization = "quantization_config";
/// NVIDIA's ModelOpt wrote the quantisation into a file of its own before it also wrote it into
/// config.json: {"producer": {...}, "quantization": {"quant_algo": "FP8", ...}}.
constexpr const char* kModelOptName = "hf_quant_config.json";

/// Removes a dot from the front. Returns false if no key follows it.
bool go_on(std::string_view& path) {
  if (!path.starts_with('.')) return true;
  path.remove_prefix(1);
  return !path.empty() && path.front() != '[';
}

/// Removes the first key or [i] from the path. Returns the member or element it names, or null.
const json* step_into(const json& value, std::string_view& path) {
  if (path.starts_with('[')) {
    const size_t close = path.find(']');
    if (close == path.npos || !value.is_array()) return nullptr;
    size_t at = 0;
    const auto [end, failure] = std::from_chars(path.data() + 1, path.data() + close, at);
    if (failure != std::errc{} || end != path.data() + close || at >= value.size()) return nullptr;
    path.remove_prefix(close + 1);
    return go_on(path) ? &value[at] : nullptr;
  }
  const std::string key(path.substr(0, path.find_first_of(".[")));
  if (!value.is_object()) return nullptr;
  const auto member = value.find(key);
  path.remove_prefix(key.size());
  return member == value.end() || !go_on(path) ? nullptr : &*member;
}

const json* find_in(const json& value, std::string_view path, const std::string& file);

/// Returns the value that the members have at `path`, or null if none has one. Throws kConfig if
/// two members differ.
const json* common_to(const std::vector<const json*>& members, std::string_view path,
                      const std::string& file) {
  const json* found = nullptr;
  for (const json* member : members) {
    const json* one = find_in(*member, path, file);
    if (one == nullptr) continue;
    if (found != nullptr && *found != *one) {
      throw Error(ErrorCode::kConfig,
                  fmt::format("members in {} differ in '{}' where one value is read", file, path))
          .note("found",
                quote_for_message(fmt::format("{} and {}", found->dump(), one->dump()), 60));
    }
    found = one;
  }
  return found;
}

/// "[]" in a path selects all members. "[kinds=word]" selects the elements i of a list for which
/// the list `kinds` beside it has the word at i.
struct Members {
  std::string_view kinds, word;
};

/// Removes "[]" or "[kinds=word]" from the front of the path. Returns nullopt if it begins
/// otherwise.
std::optional<Members> take_members(std::string_view& path) {
  const size_t close = path.starts_with('[') ? path.find(']') : path.npos;
  if (close == path.npos) return std::nullopt;
  const std::string_view inner = path.substr(1, close - 1);
  const size_t equals = inner.find('=');
  if (equals == 0 || (equals == inner.npos && !inner.empty())) return std::nullopt;
  path.remove_prefix(close + 1);
  if (path.starts_with('.')) path.remove_prefix(1);
  if (inner.empty()) return Members{};
  return Members{inner.substr(0, equals), inner.substr(equals + 1)};
}

std::vector<const json*> members_of(const json& value, const json& beside, const Members& which) {
  std::vector<const json*> members;
  if (which.kinds.empty()) {
    if (!value.is_structured()) return members;
    for (const json& member : value) members.push_back(&member);
    return members;
  }
  if (!value.is_array() || !beside.contains(which.kinds)) return members;
  const json& kinds = beside.at(std::string(which.kinds));
  if (!kinds.is_array()) return members;
  for (size_t i = 0; i < std::min(value.size(), kinds.size()); ++i) {
    if (kinds[i] == which.word) members.push_back(&value[i]);
  }
  return members;
}

const json* find_in(const json& value, std::string_view path, const std::string& file) {
  const json* at = &value;
  const json* beside = at;
  while (!path.empty() && at != nullptr) {
    if (const auto which = take_members(path)) {
      return common_to(members_of(*at, *beside, *which), path, file);
    }
    if (!path.starts_with('[')) beside = at;
    at = step_into(*at, path);
  }
  return at;
}

void collect_sizes(const json& value, const std::string& path, std::vector<std::string>& found) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      collect_sizes(member, path.empty() ? key : path + "." + key, found);
    }
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i)
      collect_sizes(value[i], fmt::format("{}[{}]", path, i), found);
  } else if (value.is_number_integer()) {
    found.push_back(path);
  }
}

bool is_list_of_words(const json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const json& one) { return one.is_string(); });
}

json parse_object(std::string_view text, const std::string& file) {
  JsonDocument document =
      parse_strict_json(text, file, ErrorCode::kConfig, kMaxConfigDepth, JsonNumbers::kPython);
  if (document.value.is_object()) return std::move(document.value);
  throw Error(ErrorCode::kConfig, fmt::format("{} is not a JSON object", file))
      .at(document.place(""));
}

/// Messages name the file without its folder, and places of errors with it.
json load_object(const std::string& path) {
  const std::string text = store::read_source_text(path, kMaxConfigBytes);
  try {
    return parse_object(text, fs::path(path).filename().string());
  } catch (Error& error) {
    if (!error.place()) throw;
    Place place = *error.place();
    place.file = path;
    throw error.at(std::move(place));
  }
}

bool is_null(const json& object, const char* key) {
  return !object.contains(key) || object[key].is_null();
}

/// Returns "quantization" of ModelOpt's file as config.json has it. Weights are quantised where
/// "quant_algo" names an algorithm; it is null where only the cache is.
json as_quantization_config(json said) {
  const bool has_weights =
      said.is_object() && said.contains("quant_algo") && said["quant_algo"].is_string();
  if (has_weights) said["quant_method"] = "modelopt";
  return said;
}

}  // namespace

ModelConfig::ModelConfig(std::shared_ptr<const json> value, std::string file)
    : value_(std::move(value)), file_(std::move(file)) {}

class ModelConfig::ReadPaths {
 public:
  void add(std::string_view path) {
    const std::lock_guard lock(mutex_);
    if (!path.empty() && !paths_.contains(path)) paths_.emplace(path);
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return {paths_.begin(), paths_.end()};
  }

 private:
  mutable std::mutex mutex_;  // ops of several devices read at once
  std::set<std::string, std::less<>> paths_;
};

ModelConfig ModelConfig::recording() const {
  ModelConfig config = *this;
  config.read_ = std::make_shared<ReadPaths>();
  return config;
}

std::vector<std::string> ModelConfig::read_paths() const {
  return read_ ? read_->all() : std::vector<std::string>();
}

ModelConfig ModelConfig::with_value(std::shared_ptr<const json> value) const {
  const ModelConfig config(std::move(value), file_);
  return read_ ? config.recording() : config;
}

const json* ModelConfig::find(std::string_view path) const {
  if (read_) read_->add(path);
  return find_in(*value_, path, file_);
}

std::optional<i64> ModelConfig::size(std::string_view path) const {
  const json* value = find(path);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (value->is_number_integer() && value->get<i64>() >= 1) return value->get<i64>();
  if (is_list_of_words(*value)) return std::ssize(*value);
  throw Error(ErrorCode::kSizeExpression,
              fmt::format("'{}' in {} is not a positive integer", path, file_))
      .note("found", quote_for_message(value->dump()))
      .note("expected", "an integer of 1 or more");
}

std::optional<std::string> ModelConfig::text(std::string_view path) const {
  const json* value = find(path);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return value->get<std::string>();
}

std::vector<std::string> ModelConfig::architectures() const {
  std::vector<std::string> names;
  const json* value = find("architectures");
  if (value == nullptr || !value->is_array()) return names;
  for (const json& name : *value) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names;
}

std::string ModelConfig::model_type() const {
  return text("model_type").value_or("");
}

std::vector<std::string> ModelConfig::size_paths() const {
  std::vector<std::string> found;
  collect_sizes(*value_, {}, found);
  return found;
}

ModelConfig parse_config(std::string_view text, const std::string& file) {
  return ModelConfig(std::make_shared<const json>(parse_object(text, file)), file);
}

ModelConfig load_config(const std::string& path) {
  const fs::path at(path);
  std::string file = at.filename().string();
  json config = load_object(path);
  const auto text = config.find("text_config");
  const bool has_text = text != config.end() && text->is_object();
  if (is_null(config, kQuantization) && has_text && !is_null(*text, kQuantization)) {
    json of_text = (*text)[kQuantization];
    config[kQuantization] = std::move(of_text);
  }
  const std::string beside = (at.parent_path() / kModelOptName).string();
  if (is_null(config, kQuantization) && store::is_file(beside)) {
    const json said = load_object(beside);
    if (!is_null(said, "quantization")) {
      config[kQuantization] = as_quantization_config(said["quantization"]);
      file += fmt::format(" and {}", kModelOptName);
    }
  }
  return ModelConfig(std::make_shared<const json>(std::move(config)), std::move(file));
}

}  // namespace shardtool::mapping

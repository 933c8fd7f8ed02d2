#include "lib/mapping/document/layer_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::mapping {
namespace {

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Returns the first path of the set that config.json has, or null.
const std::string* list_in(const LayerSet::Listed& set, const ModelConfig& config) {
  const auto found = std::find_if(set.lists.begin(), set.lists.end(), [&](const auto& path) {
    const std::string list = said_at(path, config);
    return list != "null" && list != "[]";
  });
  return found == set.lists.end() ? nullptr : &*found;
}

bool is_listed(const LayerSet::Listed& set, const std::string& list, const ModelConfig& config,
               i64 layer) {
  const std::string path = fmt::format("{}[{}]", list, layer);
  const std::string word = said_at(path, config);
  if (has(set.in, word)) return true;
  if (set.out.empty() || has(set.out, word)) return false;
  throw Error(ErrorCode::kUnsupported,
              fmt::format("'{}' in {} is not a known kind of layer", path, config.file()))
      .note("found", quote_for_message(word, 60))
      .note("expected", fmt::format("{} or {}", fmt::join(set.in, ", "), fmt::join(set.out, ", ")));
}

/// Returns n if the set is all layers except every n-th.
i64 period_of(const LayerSet::Listed& set, const ModelConfig& config) {
  const double period = set.all_but_every ? value_of(*set.all_but_every, config) : 0;
  if (period >= 1) return static_cast<i64>(period);
  throw Error(ErrorCode::kConfig,
              fmt::format("{} does not say which layers are of another kind", config.file()))
      .help(fmt::format("add \"{}\": {} or {} for each layer", set.lists.back(),
                        fmt::join(set.in, ", "), fmt::join(set.out, ", ")));
}

/// Returns the list at the path; empty if it is absent. Throws kConfig if the value is not a list.
const nlohmann::json& list_at(const std::string& path, const ModelConfig& config) {
  static const nlohmann::json kNone = nlohmann::json::array();
  const nlohmann::json* value = config.find(path);
  if (value == nullptr || value->is_null()) return kNone;
  if (value->is_array()) return *value;
  throw Error(ErrorCode::kConfig, fmt::format("'{}' in {} is not a list", path, config.file()))
      .note("found", quote_for_message(value->dump(), 60));
}

bool has_layer(const LayerSet::Listed& set, const ModelConfig& config, i64 layer) {
  const std::string* list = list_in(set, config);
  if (list != nullptr) return is_listed(set, *list, config, layer);
  if (set.otherwise) return contains(*set.otherwise, config, layer);
  return (layer + set.first.value_or(1)) % period_of(set, config) != 0;
}
bool has_layer(const LayerSet::Last& last, const ModelConfig& config, i64 layer) {
  return static_cast<double>(layer) >= value_of(last.of, config) - value_of(last.count, config);
}
bool has_layer(const LayerSet::Numbered& set, const ModelConfig& config, i64 layer) {
  const nlohmann::json& numbers = list_at(set.list, config);
  return std::find(numbers.begin(), numbers.end(), layer + set.first) != numbers.end();
}
bool has_layer(const LayerSet::AsManyAs& set, const ModelConfig& config, i64 layer) {
  return layer < std::ssize(list_at(set.list, config));
}
bool has_layer(const LayerSet::From& set, const ModelConfig& config, i64 layer) {
  if (set.count.empty()) return layer >= set.number;
  const nlohmann::json* count = config.find(set.count);
  if (count != nullptr && count->is_number_integer()) return layer >= count->get<i64>();
  throw Error(ErrorCode::kConfig,
              fmt::format("{} does not say how many layers the model has", config.file()))
      .help(fmt::format("add \"{}\"", set.count));
}

std::string words_of(const LayerSet::Listed& set, bool complement) {
  const bool is_any_other = complement && set.out.empty();
  return fmt::format("\"{}\" says {}{}", set.lists.back(), is_any_other ? "nothing of " : "",
                     fmt::join(complement && !is_any_other ? set.out : set.in, " or "));
}
std::string words_of(const LayerSet::Last&, bool complement) {
  return complement ? "not one of the last" : "one of the last";
}
std::string words_of(const LayerSet::Numbered& set, bool complement) {
  return fmt::format("\"{}\" has {} number", set.list, complement ? "not its" : "its");
}
std::string words_of(const LayerSet::AsManyAs& set, bool complement) {
  return fmt::format("it is {} as many as \"{}\" has", complement ? "after" : "among the first",
                     set.list);
}

std::string words_of(const LayerSet::From& set, bool complement) {
  const std::string begin =
      set.count.empty() ? std::to_string(set.number) : fmt::format("\"{}\"", set.count);
  return fmt::format("its number is {} {}", complement ? "below" : "not below", begin);
}

/// Refuses a word that is in both "in" and "out".
void check_words(const JsonValue& value, const LayerSet::Listed& set) {
  const auto both = std::find_if(set.in.begin(), set.in.end(),
                                 [&](const std::string& word) { return has(set.out, word); });
  if (both == set.in.end()) return;
  throw value.error(ErrorCode::kMappingSchema, fmt::format("{} stands in \"in\" and in \"out\"",
                                                           quote_for_message(*both, 60)));
}

LayerSet::Listed decode_listed(const JsonValue& value, const LayerSets& named,
                               const std::map<std::string, Number>& numbers) {
  LayerSet::Listed set;
  value.object({{"list", [&](const JsonValue& v) { set.lists = decode_paths(v); }, true},
                {"in", [&](const JsonValue& v) { set.in = decode_allowed(v); }, true},
                {"out", [&](const JsonValue& v) { set.out = decode_allowed(v); }},
                {"all_but_every",
                 [&](const JsonValue& v) { set.all_but_every = decode_number(v, numbers); }},
                {"first", [&](const JsonValue& v) { set.first = v.integer(0); }},
                {"otherwise", [&](const JsonValue& v) {
                   set.otherwise =
                       std::make_shared<const LayerSet>(decode_layer_set(v, named, numbers));
                 }}});
  if (set.all_but_every && set.otherwise) value.refuse("\"all_but_every\" or \"otherwise\"");
  if (value.has("first") && !set.all_but_every) value.refuse("\"first\" with \"all_but_every\"");
  check_words(value, set);
  return set;
}

LayerSet::Last decode_last(const JsonValue& value, const std::map<std::string, Number>& numbers) {
  LayerSet::Last last;
  value.object({{"last", [&](const JsonValue& v) { last.count = decode_number(v, numbers); }, true},
                {"of", [&](const JsonValue& v) { last.of = decode_number(v, numbers); }, true}});
  return last;
}

LayerSet::Numbered decode_numbered(const JsonValue& value) {
  LayerSet::Numbered numbered;
  value.object({{"numbers", [&](const JsonValue& v) { numbered.list = v.nonempty_text(); }},
                {"first", [&](const JsonValue& v) { numbered.first = v.integer(0); }}});
  return numbered;
}

LayerSet::AsManyAs decode_as_many_as(const JsonValue& value) {
  LayerSet::AsManyAs many;
  value.object({{"as_many_as", [&](const JsonValue& v) { many.list = v.nonempty_text(); }}});
  return many;
}

LayerSet::From decode_from(const JsonValue& value) {
  LayerSet::From from;
  value.object({{"from", [&](const JsonValue& v) {
                   if (v.is_number()) {
                     from.number = v.integer(0);
                   } else {
                     from.count = v.nonempty_text();
                   }
                 }}});
  return from;
}

}  // namespace

bool contains(const LayerSet& set, const ModelConfig& config, i64 layer) {
  const auto has = [&](const auto& kind) { return has_layer(kind, config, layer); };
  return std::visit(has, set.kind) != set.complement;
}

std::string to_string(const LayerSet& set) {
  return std::visit([&set](const auto& kind) { return words_of(kind, set.complement); }, set.kind);
}

LayerSet decode_layer_set(const JsonValue& value, const LayerSets& named,
                          const std::map<std::string, Number>& numbers) {
  LayerSet set;
  if (value.is_text()) {
    const auto found = named.find(value.text());
    if (found == named.end()) value.refuse("the name of one of the \"layer_sets\"");
    return found->second;
  }
  if (value.has("not")) {
    value.object({{"not", [&](const JsonValue& v) { set = decode_layer_set(v, named, numbers); }}});
    set.complement = !set.complement;
    return set;
  }
  if (value.has("last")) return {decode_last(value, numbers)};
  if (value.has("numbers")) return {decode_numbered(value)};
  if (value.has("as_many_as")) return {decode_as_many_as(value)};
  if (value.has("from")) return {decode_from(value)};
  return {decode_listed(value, named, numbers)};
}

}  // namespace shardtool::mapping

#include "lib/mapping/mapping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "lib/base/strict_json.h"
#include "lib/base/text.h"
#include "lib/mapping/embedded.h"
#include "lib/mapping/match/compiled_patterns.h"
#include "lib/mapping/presets.h"
#include "lib/store/reader.h"

namespace shardtool::mapping {
namespace {

constexpr i64 kMaxDocumentBytes = 16 << 20;
constexpr size_t kMaxDepth = 8;
constexpr int kMaxAxisMappingDepth = 8;
constexpr std::string_view kPresetPrefix = "preset:";

Error bad_extends(const std::string& message) {
  return Error(ErrorCode::kExtends, message);
}

/// Returns the folder part of a document's name, with a trailing slash.
std::string folder_of(const std::string& name) {
  return name.substr(0, name.rfind('/') + 1);
}

/// Returns the name of the document that the document `from` refers to as `written`.
std::string name_of(const std::string& written, const std::string& from) {
  if (written.starts_with(kPresetPrefix)) return written;
  if (from.starts_with(kPresetPrefix))
    throw bad_extends(fmt::format("preset '{}' extends a file", from));
  for (const std::string_view part : split_at(written, "/")) {
    if (part.empty() || part == "." || part == "..") {
      throw bad_extends(fmt::format("\"extends\" names '{}'", written))
          .help(
              "write a path below the mapping's own folder, without \".\", \"..\" or a leading "
              "slash");
    }
  }
  return folder_of(from) + written;
}

Document decoded(const DocumentText& text) {
  Document document = decode_document(text.text, text.name, text.has_lines);
  document.may_lack_axes = document.is_preset || text.is_recorded;
  return document;
}

std::vector<Document> decoded(const std::vector<DocumentText>& texts) {
  std::vector<Document> documents;
  for (const DocumentText& text : texts) documents.push_back(decoded(text));
  return documents;
}

bool has_patterns(const Document& document) {
  return !document.rules.empty() || !document.overrides.empty() || !document.companions.empty() ||
         !document.drop.empty() || !document.store.empty();
}

/// Loads the documents of "extends" depth first, the last entry first.
class Loader {
 public:
  explicit Loader(std::string folder) : folder_(std::move(folder)) {}

  void visit(const std::string& name) {
    check_chain(name);
    const auto same = [&](const DocumentText& other) { return other.name == name; };
    if (std::any_of(texts_.begin(), texts_.end(), same)) return;
    texts_.push_back({name, read(name)});
    documents_.push_back(decoded(texts_.back()));
    const auto extends = documents_.back().extends;
    chain_.push_back(name);
    for (size_t i = extends.size(); i-- > 0;) visit_from(extends[i].first, extends[i].second, name);
    chain_.pop_back();
  }

  std::vector<DocumentText> texts() && { return std::move(texts_); }
  std::vector<Document> documents() && { return std::move(documents_); }

 private:
  void visit_from(const std::string& written, const Place& place, const std::string& from) {
    try {
      visit(name_of(written, from));
    } catch (Error& e) {
      if (!e.place()) e.at(place);
      throw;
    }
  }

  void check_chain(const std::string& name) const {
    if (std::find(chain_.begin(), chain_.end(), name) != chain_.end()) {
      throw bad_extends(
          fmt::format("'{}' extends itself: {} -> {}", name, fmt::join(chain_, " -> "), name));
    }
    if (chain_.size() > kMaxDepth) {
      throw bad_extends(fmt::format("\"extends\" goes deeper than {} levels: {}", kMaxDepth,
                                    fmt::join(chain_, " -> ")));
    }
  }

  std::string read(const std::string& name) const {
    if (!name.starts_with(kPresetPrefix))
      return store::read_source_text(folder_ + name, kMaxDocumentBytes);
    return std::string(
        preset_text(std::string_view(name).substr(kPresetPrefix.size()), ErrorCode::kUnknownName));
  }

  std::string folder_;
  std::vector<DocumentText> texts_;
  std::vector<Document> documents_;  ///< by text
  std::vector<std::string> chain_;
};

nlohmann::json parse_setting(const std::string& text) {
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  return value.is_discarded() ? nlohmann::json(text) : value;
}

void apply_setting(nlohmann::json& document, const std::string& path, const nlohmann::json& value) {
  constexpr std::string_view kAxes = "axes.";
  if (path == "unknown" || path == "straddle" || path == "reduced_bias") {
    document[path] = value;
    return;
  }
  if (!path.starts_with(kAxes)) {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' cannot be set", path))
        .help(
            "the settings are axes.NAME, axes.NAME.FIELD, straddle, reduced_bias and unknown, as "
            "in "
            "axes.heads.uneven=balanced");
  }
  const std::string rest = path.substr(kAxes.size());
  const size_t dot = rest.find('.');
  nlohmann::json& axis = document["axes"][rest.substr(0, dot)];
  if (dot != rest.npos) {
    axis[rest.substr(dot + 1)] = value;
  } else if (value.is_object()) {
    axis.update(value);
  } else {
    axis["mesh"] = value;
  }
}

}  // namespace

Mapping::Mapping(std::vector<DocumentText> texts)
    : texts_(std::make_shared<const std::vector<DocumentText>>(std::move(texts))),
      documents_(std::make_shared<const std::vector<Document>>(decoded(*texts_))),
      patterns_(std::make_shared<const CompiledPatterns>()) {
  if (texts_->empty()) throw Error(ErrorCode::kInternal, "a mapping without documents");
}

Mapping Mapping::load(const std::string& folder, const std::string& name) {
  Loader loader(folder);
  loader.visit(name);
  return {std::make_shared<const std::vector<DocumentText>>(std::move(loader).texts()),
          std::make_shared<const std::vector<Document>>(std::move(loader).documents()),
          std::make_shared<const CompiledPatterns>()};
}

Mapping Mapping::under(DocumentText nearest) const {
  std::vector<Document> documents = {decoded(nearest)};
  if (has_patterns(documents.front()))
    throw Error(ErrorCode::kInternal, "a document with patterns shares those of others");
  documents.insert(documents.end(), documents_->begin(), documents_->end());
  std::vector<DocumentText> texts = {std::move(nearest)};
  texts.insert(texts.end(), texts_->begin(), texts_->end());
  return {std::make_shared<const std::vector<DocumentText>>(std::move(texts)),
          std::make_shared<const std::vector<Document>>(std::move(documents)), patterns_};
}

const Document& Mapping::own() const {
  const auto is_own = [](const Document& document) {
    return document.name != kSettingsName && !document.name.starts_with(kAxisMappingPrefix) &&
           !document.name.starts_with(kLayoutPrefix);
  };
  const auto found = std::find_if(documents_->begin(), documents_->end(), is_own);
  return found == documents_->end() ? documents_->front() : *found;
}

std::string Mapping::qualified(const Document& document, const std::string& label) const {
  const bool is_own = &document == &own() && !document.is_preset;
  return is_own ? label : document.name + "#" + label;
}

Mapping load_mapping(const std::string& path) {
  const std::string folder = folder_of(path);
  return Mapping::load(folder, path.substr(folder.size()));
}

Mapping load_preset(std::string_view name) {
  if (name.starts_with(kPresetPrefix)) name.remove_prefix(kPresetPrefix.size());
  find_preset(name);
  return Mapping::load({}, std::string(kPresetPrefix) + std::string(name));
}

Mapping mapping_from_documents(std::span<const DocumentText> texts) {
  return Mapping(std::vector<DocumentText>(texts.begin(), texts.end()));
}

const std::vector<DocumentText>& documents(const Mapping& mapping) {
  return mapping.texts();
}

Mapping with_settings(const Mapping& mapping,
                      const std::vector<std::pair<std::string, std::string>>& settings) {
  if (settings.empty()) return mapping;
  nlohmann::json document = {{"version", 1}};
  for (const auto& [path, text] : settings) apply_setting(document, path, parse_setting(text));
  return mapping.under({std::string(kSettingsName), document.dump()});
}

Mapping with_axis_mapping(const Mapping& mapping, const std::string& path) {
  const std::string bare = store::read_source_text(path, kMaxDocumentBytes);
  const JsonDocument parsed =
      parse_strict_json(bare, path, ErrorCode::kMappingSyntax, kMaxAxisMappingDepth);
  if (!parsed.value.is_object() || parsed.value.contains("version")) {
    throw Error(ErrorCode::kMappingSchema, "an axis mapping is an object of logical axes")
        .at({path, 1, 1, {}})
        .help("for example {\"embed\": \"fsdp\"}; a mapping file is given with --mapping");
  }
  const std::string name =
      fmt::format("{} {}", kAxisMappingPrefix, path.substr(path.rfind('/') + 1));
  return mapping.under({name, "{\"version\": 1, \"axes\": " + bare + "}", false});
}

Mapping with_layout(const Mapping& mapping, std::vector<DocumentText> layout) {
  const auto is_layout = [](const DocumentText& text) {
    return text.name.starts_with(kLayoutPrefix);
  };
  const auto& texts = mapping.texts();
  if (layout.empty() && std::none_of(texts.begin(), texts.end(), is_layout)) return mapping;
  std::copy_if(texts.begin(), texts.end(), std::back_inserter(layout), std::not_fn(is_layout));
  return Mapping(std::move(layout));
}

std::string schema_json() {
  return std::string(embedded_schema());
}

}  // namespace shardtool::mapping

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/mapping/document/document.h"

namespace shardtool::mapping {

/// A mapping document as it was read. The name is a path relative to the first document's folder,
/// or "preset:llama".
struct DocumentText {
  std::string name;
  std::string text;
};

/// The name of the document that with_settings adds.
inline constexpr std::string_view kSettingsName = "--set";

/// A mapping file with everything that it extends, decoded.
///
/// D1 texts and documents agree: document i was decoded from text i
/// D2 the nearest document comes first: the own file, then what it extends, the last entry of
///    "extends" first (later wins), depth first, each document once
/// D3 there is at least one document
class Mapping {
 public:
  /// Decodes each text. Throws kMappingSyntax, kMappingSchema, kUnknownName with places; kInternal
  /// for no texts.
  explicit Mapping(std::vector<DocumentText> texts);

  const std::vector<DocumentText>& texts() const { return texts_; }
  std::span<const Document> documents() const { return documents_; }
  /// The document that the user named: the first one that is no settings.
  const Document& own() const;
  /// What a rule or companion of a document is called: its label, with the document's name before
  /// it
  /// ("preset:llama#q") unless that is the user's own file.
  std::string qualified(const Document& document, const std::string& label) const;

 private:
  std::vector<DocumentText> texts_;
  std::vector<Document> documents_;
};

/// The file and, by "extends", presets ("preset:NAME") and files inside its own folder tree. Throws
/// kExtends for a cycle, more than 8 levels, an absolute path or "..", and what the constructor and
/// io::read_text throw.
Mapping load_mapping(const std::string& path);
/// A preset and what it extends. Throws kUnknownName with near misses.
Mapping load_preset(std::string_view name);
/// What a manifest stores: the texts in the order of `documents`; reads no file.
Mapping mapping_from_documents(std::span<const DocumentText> texts);
/// The texts, nearest first.
const std::vector<DocumentText>& documents(const Mapping& mapping);

/// The mapping with settings such as {"axes.heads.uneven", "balanced"} as a nearest document
/// "--set", so that they are recorded like any other. A value is JSON, or else a string. Throws
/// kUsage for a path that does not begin with "axes." and is none of "straddle", "reduced_bias" and
/// "unknown".
Mapping with_settings(const Mapping& mapping,
                      const std::vector<std::pair<std::string, std::string>>& settings);

/// The JSON Schema (draft-07) of one document.
std::string schema_json();

}  // namespace shardtool::mapping

#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/mapping/document/document.h"

namespace shardtool::mapping {

struct CompiledPatterns;

/// The text of a mapping document. The name is a path relative to the first document's folder, or
/// "preset:llama".
struct DocumentText {
  std::string name;
  std::string text;
  bool has_lines = true;     ///< false if the lines of `text` are not those of what `name` names
  bool is_recorded = false;  ///< of a manifest: it has been resolved over the manifest's mesh
};

/// The name of the document that with_settings adds.
inline constexpr std::string_view kSettingsName = "--set";

/// First word of the name of the document that with_axis_mapping adds: "--axis-mapping axes.json".
inline constexpr std::string_view kAxisMappingPrefix = "--axis-mapping";

/// Prefix of the names of the documents that an engine's layout adds: "layout:vllm@0.32#vocab".
inline constexpr std::string_view kLayoutPrefix = "layout:";

/// A mapping file and all documents that it extends, decoded. Copies share them, and the patterns
/// that the first use compiles.
///
/// D1 document i was decoded from text i
/// D2 the nearest document comes first: the file itself, then what it extends, the last entry of
///    "extends" first (later wins), depth first, each document once
/// D3 there is at least one document
class Mapping {
 public:
  /// Decodes each text. Throws kMappingSyntax, kMappingSchema and kUnknownName with places;
  /// kInternal if there are no texts.
  explicit Mapping(std::vector<DocumentText> texts);
  /// Loads the document `name` of a folder and what it extends, and decodes each once. Throws what
  /// load_mapping throws.
  static Mapping load(const std::string& folder, const std::string& name);

  const std::vector<DocumentText>& texts() const { return *texts_; }
  std::span<const Document> documents() const { return *documents_; }
  /// The document that the user named: the first one that no flag and no layout adds.
  const Document& own() const;
  /// The compiled patterns of the documents. Several threads may use them at once.
  const CompiledPatterns& patterns() const { return *patterns_; }
  /// Returns this mapping below a nearest document that has no patterns: no rules, companions,
  /// "drop" or "store". It shares the compiled patterns. Throws what the constructor throws, and
  /// kInternal for a document with patterns.
  Mapping under(DocumentText nearest) const;
  /// Name of a rule or companion in messages: its label. If it is not from the user's own file, the
  /// document's name comes first: "preset:llama#q".
  std::string qualified(const Document& document, const std::string& label) const;

 private:
  using Texts = std::shared_ptr<const std::vector<DocumentText>>;
  using Documents = std::shared_ptr<const std::vector<Document>>;

  Mapping(Texts texts, Documents documents, std::shared_ptr<const CompiledPatterns> patterns)
      : texts_(std::move(texts)),
        documents_(std::move(documents)),
        patterns_(std::move(patterns)) {}

  Texts texts_;
  Documents documents_;
  std::shared_ptr<const CompiledPatterns> patterns_;
};

/// Loads the file and what it extends: presets ("preset:NAME") and files in its own folder tree.
/// Throws kExtends for a cycle, more than 8 levels, an absolute path or "..", and what the
/// constructor and store::read_text throw.
Mapping load_mapping(const std::string& path);
/// Loads a preset and what it extends. Throws kUsage with similar names.
Mapping load_preset(std::string_view name);
/// Decodes the texts that a manifest stores, in the order of `documents`. Reads no file.
Mapping mapping_from_documents(std::span<const DocumentText> texts);
/// Returns the texts, nearest first.
const std::vector<DocumentText>& documents(const Mapping& mapping);

/// Adds settings such as {"axes.heads.uneven", "balanced"} as a nearest document "--set", so that
/// manifests record them like any other document. A value is JSON, or else a string. Throws kUsage
/// unless the path begins with "axes." or is "straddle", "reduced_bias" or "unknown", and the
/// errors of Mapping.
Mapping with_settings(const Mapping& mapping,
                      const std::vector<std::pair<std::string, std::string>>& settings);

/// Adds the file, a bare axis mapping such as {"embed": "fsdp", "mlp": ["replica", "model"]}
/// (Haliax), as the "axes" of a nearest document, which has the file's name without its folder.
/// Throws kMappingSchema if the file is a mapping, and the errors of Mapping and store::read_text.
Mapping with_axis_mapping(const Mapping& mapping, const std::string& path);

/// Puts the documents of an engine's layout in front, in place of those that are there. Without
/// documents, removes them.
Mapping with_layout(const Mapping& mapping, std::vector<DocumentText> layout);

/// Returns the JSON Schema (draft-07) of one document.
std::string schema_json();

}  // namespace shardtool::mapping

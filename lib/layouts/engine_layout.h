#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/layouts/rank_form.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/mapping.h"
#include "lib/mesh/mesh.h"

namespace shardtool::layouts {

/// Names of the files of a layout: "model-pp-{pp}-tp-{tp}-part-{part}.safetensors". A field is a
/// mesh axis, or rank, part or parts (their number); {tp.size} is the number of devices along tp;
/// {rank+1:05} counts from 1 in five digits.
struct FileNames {
  std::string pattern;
  std::vector<std::string> axes;  ///< mesh axes with a field in the pattern, each once
  bool has_rank = false;          ///< with a field for the rank, which tells all axes apart
  bool has_parts = false;         ///< with a field for the part; otherwise a rank has one file
};

/// Form in which files hold tensors.
struct StoredForm {
  std::string format = "safetensors";  ///< a row of format::writer_table()
  /// Parts are boxes, each stored once: a holder of several intervals has several parts, replicas
  /// have one, and padding has none.
  bool has_chunks = false;
};

/// Models of one layout that share a table of tensor names.
struct LayoutModels {
  std::vector<std::string> model_types;
  std::vector<std::string> documents;  ///< nearest first
  std::vector<std::string> quantised;  ///< forms (mapping::quantization_tag) that are stored, too
  std::string proof;                   ///< meshes on which the engine's loader took the files
};

/// Models that a layout cannot express on some meshes, or that no engine has loaded yet.
struct ModelCase {
  std::string config;                  ///< path of config.json with a value, or with the value `is`
  std::string is;                      ///< JSON text; empty: any but null
  std::vector<std::string> mesh_axes;  ///< only if the mesh has several devices along each of them
  std::vector<std::string> model_types;  ///< only these; empty: all
  std::vector<std::string> quantised;  ///< only these forms (mapping::quantization_tag); empty: all
  std::string reason;
};

/// Form of checkpoints that one version of an engine loads: the names of files and tensors, and
/// which tensors are stored together. Data: lib/layouts/NAME.json.
///
/// The tensors' names are rules of mapping documents ("store", "read", "axes", "overrides"), so a
/// layout is a mapping document in front of the model's own. A layout without files is only read.
struct EngineLayout {
  std::string name;     ///< "vllm"
  std::string version;  ///< of the engine: "0.32"
  std::string description;
  std::vector<FileNames> files;  ///< the first that has a field for every mesh axis in use
  std::vector<mapping::DocumentText> documents;
  std::vector<LayoutModels> models;
  std::string proof;  ///< program that took the files, of a layout without rows of models
  std::vector<ModelCase> refusals;
  std::vector<ModelCase> experimental;  ///< written, although no engine has loaded such files yet
  std::string other_axes;               ///< advice for a mesh axis that the file names lack
  StoredForm form;
  bool is_even = true;  ///< the engine cuts axes into equal parts only
  /// The engine rounds every device's part of an axis up to the axis' multiple, if the axis itself,
  /// rounded up to it, does not divide over the devices.
  bool pads_parts = false;
  RankForm ranks;                      ///< of checkpoints whose files are those of ranks
  std::vector<std::string> left_out;   ///< globs of tensors without a rule that are no weights
  std::vector<std::string> own_files;  ///< names of files that only this form has
  /// Weights that the engine may save in another form than it loads; each reason is a warning for
  /// files that are read without a manifest.
  std::vector<ModelCase> saved;

  std::string_view text;  ///< JSON of the layout

  std::string label() const { return name + "@" + version; }
};

/// All layouts, sorted by name; of one name, the newest version first.
std::span<const EngineLayout> engine_layouts();

/// Use of a layout: its files are written, or they are only read.
enum class LayoutUse { kWritten, kOnlyRead };
/// Names and labels of the layouts of one use, sorted by name. Reads only the beginnings of their
/// texts.
std::vector<std::string> layout_names(LayoutUse use);

/// Returns the layout "vllm@0.32", or the newest known version of "vllm". Throws kUsage with the
/// known labels, after the names of `others`, and with near misses.
const EngineLayout& find_layout(std::string_view label, std::span<const std::string> others = {});

/// Names and labels of the layouts whose files tell where the model's tensors lie, without a
/// manifest: by rules of reading, or by the inverse of the rules that store them.
const std::vector<std::string>& read_layout_names();

/// Returns the documents for a model, nearest first, without those whose "when" names other values
/// of config.json; none for a layout without models, which takes any. Throws kUnsupported for a
/// model that the layout has no table for; kConfig if there is no config.json.
std::vector<mapping::DocumentText> documents_for(const EngineLayout& layout,
                                                 const mapping::ModelConfig* config);

/// True if the layout's documents have rules of "read": a stored tensor may then hold several of
/// the model's.
bool has_read_rules(const EngineLayout& layout);

/// True if a tensor of the layout's files may hold several of the model's, or be in another shape.
/// Their places then follow from config.json.
bool fuses(const EngineLayout& layout);

/// Throws kUnsupported for a case in layout.refusals; not for a form of quantised weights that the
/// model's row lists.
void check_expressible(const EngineLayout& layout, const mapping::ModelConfig& config,
                       const mesh::Mesh& mesh);

/// Returns the reasons of the cases in layout.experimental that this one is.
std::vector<std::string> experimental_reasons(const EngineLayout& layout,
                                              const mapping::ModelConfig& config,
                                              const mesh::Mesh& mesh);

/// Returns the reasons of the cases in layout.saved that a model on this mesh is.
std::vector<std::string> saved_reasons(const EngineLayout& layout,
                                       const mapping::ModelConfig& config, const mesh::Mesh& mesh);

/// Returns the names of files for a mesh. Throws kUnsupported if a mesh axis of several devices has
/// no field in any of the layout's patterns, since its ranks would have one file, and for a layout
/// that is only read.
const FileNames& names_for(const EngineLayout& layout, const mesh::Mesh& mesh);

/// Returns the mesh with an axis of one device for each field of the file names that it lacks.
/// Engines pad an axis that one device holds, too, and padding belongs to a mesh axis.
mesh::Mesh with_axes(const FileNames& names, const mesh::Mesh& mesh);

/// Name of part `part` of the `parts` files of a rank. Requires a mesh with an axis for every
/// field.
std::string file_name(const FileNames& names, const mesh::Mesh& mesh, i64 rank, size_t part,
                      size_t parts = 1);

}  // namespace shardtool::layouts

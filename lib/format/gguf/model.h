#pragma once

#include <string>
#include <vector>

#include "lib/format/folder_listing.h"
#include "lib/format/gguf/header.h"
#include "lib/format/problem.h"
#include "lib/format/typed_location.h"
#include "lib/store/reader.h"

namespace shardtool::format::gguf {

/// An opened file.
struct ModelFile {
  std::string name;  ///< relative to the folder
  std::string path;
  i64 size = 0;
  Header header;
};

/// A model in one file or in the parts name-00001-of-0000N.gguf of a split.
struct ModelFiles {
  std::string folder;
  std::vector<ModelFile> files;  ///< in the order of the parts; those that could be read

  /// The pairs that describe the model: those of the first part.
  const Header& head() const { return files.front().header; }
};

/// Names of the GGUF files of a folder.
std::vector<std::string> file_names(const FolderListing& listing);

/// True for a file that ends in .gguf, for a folder whose only weights are such files, and for
/// gguf:PLACE. Throws the errors of listing a folder.
bool is_gguf(const TypedLocation& location);

/// Opens the model of a folder or a file (TypedLocation::place): all parts of the split that the
/// file belongs to. Every defect goes to `report`: those of read_header, kFileMissing, kUnreadable,
/// kTensorInTwoFiles, and kSplitParts for parts that count differently. Throws kUnsupported for a
/// folder with several models, and kFileMissing for one without.
ModelFiles open_model(const std::string& place, const ProblemSink& report);

/// The place, or the folder of a file.
std::string folder_of(const std::string& place);

/// Names of the files of every model in a folder, or of the one that a file belongs to. Throws
/// kFileMissing for a folder without one.
std::vector<std::vector<std::string>> models_at(const std::string& place);

/// Opens these files of a folder as one model.
ModelFiles open_files(const std::string& folder, const std::vector<std::string>& names,
                      const ProblemSink& report);

}  // namespace shardtool::format::gguf

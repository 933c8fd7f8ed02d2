#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/format/checkpoint.h"
#include "lib/format/folder_listing.h"
#include "lib/format/problem.h"

namespace shardtool::format {

/// A location that the user named: a folder, or a file in it.
struct Location {
  std::string format;  ///< that the user insists on; empty: the first that fits
  std::string folder;
  std::string file;                     ///< name of the file; empty if the folder was named
  FolderListing listing;                ///< empty for a file that stands for itself only
  std::optional<std::string> manifest;  ///< text of shardtool's manifest.json, if it is to be read
};

/// Way to read checkpoints of one format. registry.cc has one row for each; a format may have
/// several.
struct Reader {
  std::string_view format;  ///< "dcp"; what FORMAT:FOLDER names
  /// True for the name of a file that stands for its whole folder, such as an index.
  bool (*is_entry)(std::string_view file);
  bool (*recognises)(const Location& location);
  /// Reads the headers: fills format, files, tensors and warnings of a checkpoint whose path is
  /// set. Reads no data of tensors. Throws and reports as survey_checkpoint.
  void (*open)(Checkpoint& checkpoint, Location& location, const ProblemSink& report);
};

/// True if the file of this name stands for its folder in some format.
bool is_entry_of_folder(std::string_view file);

/// The only format without a Reader: `inspect` and `check` read it (gguf/model.h).
inline constexpr std::string_view kGguf = "gguf";

/// Names of all formats, in the order in which they are looked for in a folder.
std::vector<std::string> format_names();

/// Returns the first reader that recognises the location, of the location's format if it has one.
/// Throws kFileMissing for a folder without weights or without those of the format, and
/// kUnsupported for weights in other formats only.
const Reader& reader_of(const Location& location);

/// Warns of files in the folder that other formats recognise. Does nothing for an output with a
/// manifest, or if the user named the format or a file.
void warn_of_other_formats(Checkpoint& checkpoint, const Location& location, const Reader& chosen);

// Parts that readers share.

bool has_name(const std::vector<std::string>& sorted_names, std::string_view name);
/// Warning of a weights file that a checkpoint does not consist of: "not named by BY and ignored".
Warning unlisted_file(const std::string& name, std::string_view by);
/// Warns of files that the checkpoint does not consist of.
void warn_of_unlisted(Checkpoint& checkpoint, const std::vector<std::string>& names,
                      std::string_view by);
/// Returns STEM-00001-of-0000N to STEM-0000N-of-0000N, with this extension, if all of the sorted
/// names are among them. Returns no name otherwise.
std::vector<std::string> series_of(const std::vector<std::string>& names,
                                   std::string_view extension);
/// Warns that the parts were recognised by their names.
void warn_of_no_index(Checkpoint& checkpoint);
Error unclear_choice(const std::string& folder, const std::vector<std::string>& names,
                     const std::string& help);

}  // namespace shardtool::format

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardtool::layouts {

/// Names of the layouts of read_layout_names() in whose files most of these tensors may be, and
/// which name these files so if they have names for them. Several tools may give the same names. Of
/// layouts that fuse tensors, those with the most names that no model has.
std::vector<std::string> layouts_with_tensors(std::span<const std::string> tensors,
                                              std::span<const std::string> files);

/// Names of the layouts that read a file per rank, joined by a RankForm.
std::vector<std::string> layouts_of_ranks();

/// Names of the layouts of read_layout_names() that name files so, whatever their
/// ending is. Empty without files. Leaves out layouts that fuse tensors: other files of ranks have
/// the same names.
std::vector<std::string> layouts_with_files(std::span<const std::string> files);

/// The layouts by the names of the files or, if these tell none, of the tensors.
std::vector<std::string> layouts_of_folder(std::span<const std::string> tensors,
                                           std::span<const std::string> files);

/// Returns the advice to name one of these layouts in front of a path: "the names are those of
/// meta: give meta:PATH"; empty without layouts.
std::string advice_to_name(std::span<const std::string> layouts, std::string_view path);

}  // namespace shardtool::layouts

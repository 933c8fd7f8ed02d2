#pragma once

#include <string>
#include <vector>

namespace shardtool::format {

/// Files of a folder by purpose. All names are sorted; hidden files and other folders are
/// left out.
struct FolderListing {
  std::vector<std::string> weights;          ///< *.safetensors
  std::vector<std::string> indices;          ///< *.safetensors.index.json
  std::vector<std::string> torch_weights;    ///< *.bin, *.pt, *.pth, *.ckpt
  std::vector<std::string> torch_indices;    ///< *.bin.index.json
  std::vector<std::string> dcp_data;         ///< *.distcp
  std::vector<std::string> foreign_weights;  ///< formats that are not read
  std::vector<std::string> others;           ///< plain files: config, tokenizer, README, ...
  std::vector<std::string> rank_folders;     ///< mp_rank_*, the folders of Megatron's ranks
  std::vector<std::string>
      outside_links;  ///< links to nothing, or out of a folder that is no snapshot
};

/// Sorts the names of files, which keep their order. Names that are no plain file names are left
/// out.
FolderListing sort_by_purpose(const std::vector<std::string>& names);

/// Throws kUnreadable if the folder cannot be listed.
FolderListing list_folder(const std::string& path);

/// Throws kUnsupported for a file that is reached through a link out of the folder. Such a file was
/// not sent with the folder, and the writers of the formats that call this make no links. Accepts
/// links of the Hugging Face cache to its blobs; links to nothing are left to the reader of the
/// file.
void require_inside(const std::string& folder, const std::string& name);

}  // namespace shardtool::format

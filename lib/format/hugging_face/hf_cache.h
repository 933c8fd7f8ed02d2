#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardtool::format {

/// Folder of the cache, from the environment; it may not exist.
std::string hf_cache_folder();

/// True if a location has the form hf://org/name[@revision].
bool is_hf_location(std::string_view location);

/// Snapshot folder of hf://org/name[@revision] in the local Hugging Face cache; never uses the
/// network. The revision is a branch, a tag or a full commit, "main" by default.
///
///     HF_HUB_CACHE | HF_HOME/hub | ~/.cache/huggingface/hub
///       models--org--name/refs/main                  holds a commit
///       models--org--name/snapshots/<commit>/*       links to
///       models--org--name/blobs/<hash>               (possibly links themselves)
///
/// Throws kUsage for an invalid location, kFileMissing with the searched path, the revisions found
/// and the download command, and kUnreadable for a cache that this user must not see.
std::string resolve_hf_location(std::string_view location);

/// True if a folder is such a snapshot. Only in snapshots are links out of the folder expected.
bool is_hf_snapshot(const std::string& folder);

/// Hub's hash of a blob of the cache, taken from its name: 64 hex digits (the SHA-256 of a large
/// file) or 40 (git's SHA-1 of a small one). Nullopt for any other file. `path` is canonical.
std::optional<std::string> blob_name(const std::string& path);

}  // namespace shardtool::format

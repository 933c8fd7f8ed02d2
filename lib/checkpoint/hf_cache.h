#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardtool::checkpoint {

/// Whether a location is written hf://org/name[@revision].
bool is_hf_location(std::string_view location);

/// The snapshot folder of hf://org/name[@revision] in the local Hugging Face cache; the network is
/// never used. The revision is a branch, a tag or a full commit, "main" when none is given.
///
///     HF_HUB_CACHE | HF_HOME/hub | ~/.cache/huggingface/hub
///       models--org--name/refs/main                  holds a commit
///       models--org--name/snapshots/<commit>/*       links to
///       models--org--name/blobs/<hash>               (possibly links themselves)
///
/// Throws kUsage for what is no such location and kFileMissing, which says where was looked, what
/// is there, and how to download.
std::string resolve_hf_location(std::string_view location);

/// Whether a folder is such a snapshot: there, and only there, links out of the folder are what
/// they should be.
bool is_hf_snapshot(const std::string& folder);

/// What the hub calls the content of a blob of the cache, by its name: 64 hex digits (the SHA-256
/// of a large file) or 40 (git's SHA-1 of a small one). Nothing for any other file. `path` is
/// canonical.
std::optional<std::string> blob_name(const std::string& path);

}  // namespace shardtool::checkpoint

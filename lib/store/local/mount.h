#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardtool::store {

/// Program that shows an object store as a folder which cannot be renamed or whose files cannot be
/// written at any offset, so that no output appears complete or not at all: "mountpoint-s3"
/// (its doc/SEMANTICS.md) or "gcsfuse" (its docs/semantics.md). Nullopt for other file systems.
std::optional<std::string> object_mount(const std::string& folder);

/// Same for an absolute folder without links and the text of /proc/self/mountinfo (proc(5)).
std::optional<std::string> object_mount_in(std::string_view mountinfo, std::string_view folder);

}  // namespace shardtool::store

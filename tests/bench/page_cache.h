#pragma once

#include <string>

namespace shardtool::bench {

/// Syncs the safetensors files below a folder and drops them from the page cache.
void make_cold(const std::string& folder);

/// Reads them into the page cache.
void make_warm(const std::string& folder);

}  // namespace shardtool::bench

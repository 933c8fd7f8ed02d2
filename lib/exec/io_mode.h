#pragma once

namespace shardtool::exec {

/// How data moves between memory and files.
enum class IoMode {
  kAuto,      ///< reads what the page cache has through it and the rest past it; writes past it
  kBuffered,  ///< all through the page cache
  kDirect,    ///< whole pages past the page cache, or not at all
};

}  // namespace shardtool::exec

#pragma once

namespace shardtool::exec {

/// Use of the page cache for data transfers.
enum class IoMode {
  kAuto,      ///< reads cached data through the page cache and the rest past it; writes past it
  kBuffered,  ///< all through the page cache
  kDirect,    ///< whole pages past the page cache; an error if unsupported
};

}  // namespace shardtool::exec

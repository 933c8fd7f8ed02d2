#pragma once

#include <string>
#include <vector>

#include "lib/base/error.h"

namespace shardtool {

/// Error for an engine that is not built, or whose library or device is missing. Exit status 6.
Error engine_missing(std::string message);

/// Shared library that is opened at run time with private symbols. It stays open until the process
/// ends: MPI and NCCL leave threads and exit handlers behind.
class DynamicLibrary {
 public:
  /// Opens the first candidate that can be opened: names that the loader searches for, or paths.
  /// Throws engine_missing with the loader's message for each; `what` names the library in the
  /// message.
  DynamicLibrary(const std::string& what, const std::vector<std::string>& candidates);

  /// Candidate that was opened.
  const std::string& name() const { return name_; }

  /// Returns the function of this name. Throws engine_missing if the library lacks it.
  template <class Function>
  Function function(const char* symbol) const {
    return reinterpret_cast<Function>(address_of(symbol));
  }

 private:
  void* address_of(const char* symbol) const;

  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace shardtool

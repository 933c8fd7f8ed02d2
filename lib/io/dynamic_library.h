#pragma once

#include <string>
#include <vector>

#include "lib/base/error.h"

namespace shardtool::io {

/// Why an engine cannot be used here: not built, a library or a device that is missing. Exit 6.
Error engine_missing(std::string message);

/// A shared library that is opened at run time, its symbols kept to itself. It stays open as long
/// as the process lives: MPI and NCCL leave threads and exit handlers behind.
class DynamicLibrary {
 public:
  /// Opens the first of these that can be opened: names that the loader looks for, or paths. Throws
  /// engine_missing with what the loader says of each; `what` names the thing in the message.
  DynamicLibrary(const std::string& what, const std::vector<std::string>& candidates);

  /// The candidate that was opened.
  const std::string& name() const { return name_; }

  /// The function of this name. Throws engine_missing when the library has none.
  template <class Function>
  Function function(const char* symbol) const {
    return reinterpret_cast<Function>(address_of(symbol));
  }

 private:
  void* address_of(const char* symbol) const;

  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace shardtool::io

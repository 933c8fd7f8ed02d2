#pragma once

#include <filesystem>
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

/// Folders of Python's packages around a binary: for a program in PREFIX/bin those that exist below
/// PREFIX/lib, for a module in PACKAGES/shardtool the folder PACKAGES.
std::vector<std::filesystem::path> python_packages(const std::filesystem::path& binary);

/// Program or Python module that this code is part of; empty if the system does not tell.
std::filesystem::path this_binary();

/// Candidates for DynamicLibrary: each name for the loader, then the files of that name which
/// NVIDIA's wheels, such as those of the extra `cuda`, have put into the Python environment of
/// `binary`. Paths stay as they are.
std::vector<std::string> with_nvidia_wheels(const std::vector<std::string>& names,
                                            const std::filesystem::path& binary = this_binary());

}  // namespace shardtool

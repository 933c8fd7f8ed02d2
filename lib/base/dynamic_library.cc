#include "lib/base/dynamic_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace shardtool {
namespace {

namespace fs = std::filesystem;

/// Folders in a folder, in the order of their names; none if there is no such folder.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    if (entry.is_directory(failure)) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

Error engine_missing(std::string message) {
  return {ErrorCode::kEngineMissing, std::move(message)};
}

DynamicLibrary::DynamicLibrary(const std::string& what,
                               const std::vector<std::string>& candidates) {
  Error error = engine_missing(fmt::format("{} cannot be opened", what));
  for (const std::string& candidate : candidates) {
    handle_ = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    name_ = candidate;
    if (handle_ != nullptr) return;
    const char* const why = ::dlerror();
    error.note("tried", why == nullptr ? candidate : why);
  }
  throw error;
}

void* DynamicLibrary::address_of(const char* symbol) const {
  void* const address = ::dlsym(handle_, symbol);
  if (address != nullptr) return address;
  throw engine_missing(fmt::format("{} has no {}", name_, symbol));
}

std::vector<fs::path> python_packages(const fs::path& binary) {
  if (binary.extension() == ".so") return {binary.parent_path().parent_path()};
  std::vector<fs::path> found;
  std::error_code failure;
  for (const fs::path& python : folders_in(binary.parent_path().parent_path() / "lib")) {
    if (!python.filename().string().starts_with("python3")) continue;
    for (const char* const name : {"site-packages", "dist-packages"}) {
      if (fs::is_directory(python / name, failure)) found.push_back(python / name);
    }
  }
  return found;
}

fs::path this_binary() {
  Dl_info info{};
  // The loader knows a program by the name that it was called with, a module by its path.
  if (::dladdr(reinterpret_cast<void*>(&this_binary), &info) != 0 && info.dli_fname != nullptr) {
    const fs::path file = info.dli_fname;
    if (file.extension() == ".so") return file;
  }
  std::error_code failure;
  return fs::read_symlink("/proc/self/exe", failure);
}

std::vector<std::string> with_nvidia_wheels(const std::vector<std::string>& names,
                                            const fs::path& binary) {
  std::vector<fs::path> folders;
  for (const fs::path& packages : python_packages(binary)) {
    for (const fs::path& wheel : folders_in(packages / "nvidia")) folders.push_back(wheel / "lib");
  }
  std::vector<std::string> candidates;
  std::error_code failure;
  for (const std::string& name : names) {
    candidates.push_back(name);
    if (name.find('/') != std::string::npos) continue;
    for (const fs::path& folder : folders) {
      if (fs::exists(folder / name, failure)) candidates.push_back(folder / name);
    }
  }
  return candidates;
}

}  // namespace shardtool

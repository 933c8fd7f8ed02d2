#include "lib/base/dynamic_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

namespace shardtool {

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

}  // namespace shardtool

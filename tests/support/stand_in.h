#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <string>

namespace shardtool::test {

/// Calls a control function of a fake library.
template <class Result, class... Args>
Result turn(const std::string& library, const char* knob, Args... args) {
  void* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(opened != nullptr);
  return reinterpret_cast<Result (*)(Args...)>(::dlsym(opened, knob))(args...);
}

}  // namespace shardtool::test

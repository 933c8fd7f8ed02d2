#include "lib/base/dynamic_library.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

using namespace shardtool;
using namespace shardtool::test;

namespace fs = std::filesystem;

TEST_CASE("NVIDIA's wheels are looked for in the environment of the program and of the module") {
  const TempFolder folder;
  const fs::path root = folder.path();
  const fs::path packages = root / "lib/python3.12/site-packages";
  const std::string runtime =
      folder.write("lib/python3.12/site-packages/nvidia/cu13/lib/libcudart.so.13", "no library");
  folder.write("lib/python2.7/site-packages/nvidia/cu13/lib/libcudart.so.13", "no library");
  fs::create_directories(packages / "nvidia/nccl/include");

  const std::vector<std::string> names{"libcudart.so.13", "libcudart.so.12"};
  const std::vector<std::string> expected{"libcudart.so.13", runtime, "libcudart.so.12"};
  CHECK(with_nvidia_wheels(names, root / "bin/shardtool") == expected);
  CHECK(with_nvidia_wheels(names, packages / "shardtool/_core.abi3.so") == expected);
  CHECK(with_nvidia_wheels(names, root / "elsewhere/bin/shardtool") == names);
  CHECK(with_nvidia_wheels({runtime}, root / "bin/shardtool") == std::vector<std::string>{runtime});
}

TEST_CASE("Debian's folder of packages is one of Python's") {
  const TempFolder folder;
  const fs::path root = folder.path();
  fs::create_directories(root / "lib/python3.11/dist-packages");
  fs::create_directories(root / "lib/python3");
  CHECK(python_packages(root / "bin/shardtool") ==
        std::vector<fs::path>{root / "lib/python3.11/dist-packages"});
}

TEST_CASE("a library that the loader does not find is opened from a wheel") {
  const TempFolder folder;
  const fs::path root = folder.path();
  const fs::path wheel = root / "lib/python3.12/site-packages/nvidia/some/lib";
  fs::create_directories(wheel);
  const DynamicLibrary known("the library of C", {"libc.so.6"});
  Dl_info info{};
  REQUIRE(::dladdr(known.function<void*>("getpid"), &info) != 0);
  fs::create_symlink(info.dli_fname, wheel / "libshardtool_wheel.so.1");

  const DynamicLibrary opened(
      "a library of a wheel",
      with_nvidia_wheels({"libshardtool_wheel.so.1"}, root / "bin/shardtool"));
  CHECK(opened.name() == wheel / "libshardtool_wheel.so.1");
  CHECK(opened.function<int (*)()>("getpid")() > 0);
}

TEST_CASE("this program knows where it is") {
  CHECK(this_binary().filename() == fs::read_symlink("/proc/self/exe").filename());
}

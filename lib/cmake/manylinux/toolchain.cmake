# Toolchain of build.sh in this folder: zig's clang for glibc 2.28, and the libraries that the script laid out.
set(made ${CMAKE_CURRENT_LIST_DIR}/../../../build/manylinux)
cmake_path(NORMAL_PATH made)
set(CMAKE_C_COMPILER ${made}/bin/cc)
set(CMAKE_CXX_COMPILER ${made}/bin/c++)
list(PREPEND CMAKE_PREFIX_PATH ${made})
set(ENV{PKG_CONFIG_LIBDIR} ${made}/lib/pkgconfig)
# Headers of the system's glibc must not mix with zig's, nor its C++ archives with libc++.
set(CMAKE_IGNORE_PATH /usr/include /usr/include/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu)
# __builtin_cpu_supports answers no to everything with zig's own runtime library; this object of GCC's asks the processor.
set(CMAKE_EXE_LINKER_FLAGS_INIT ${made}/lib/cpuinfo.o)
set(CMAKE_SHARED_LINKER_FLAGS_INIT ${made}/lib/cpuinfo.o)
set(CMAKE_MODULE_LINKER_FLAGS_INIT ${made}/lib/cpuinfo.o)

#pragma once

#include <sys/mman.h>

#include <span>
#include <string_view>

#include "lib/store/local/file.h"
#include "tests/fuzz/property.h"

namespace shardtool::fuzz {

/// Returns a file in memory with these bytes.
inline store::File memory_file(std::string_view bytes) {
  store::File file(memfd_create("fuzz", MFD_CLOEXEC), "f");
  holds(file.is_open(), "no file in memory");
  store::write_exact(file, std::as_bytes(std::span(bytes)), 0);
  return file;
}

}  // namespace shardtool::fuzz

#include "lib/api/transfer/scratch_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/store/local/failure.h"
#include "lib/store/local/syscalls.h"
#include "lib/store/local/tree.h"

namespace shardtool::api {
namespace {

void create_folder(const std::string& path) {
  if (store::syscalls().mkdir(path.c_str(), 0700) == 0) return;
  throw store::write_failure("create the folder", path, errno);
}

/// Part of a name that nobody can foresee, and create first.
std::string random_mark() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace

ScratchFolder::ScratchFolder(const std::string& parent, std::string_view purpose)
    : path_(fmt::format("{}/.shardtool-{}-{}", parent, purpose, random_mark())) {
  create_folder(path_);
}

ScratchFolder::~ScratchFolder() {
  store::remove_tree(path_);
}

std::string ScratchFolder::operator/(std::string_view name) const {
  return fmt::format("{}/{}", path_, name);
}

void ScratchFolder::make_folder(std::string_view name) const {
  create_folder(*this / name);
}

void require_space(const std::string& folder, i64 bytes) {
  constexpr i64 kMargin = 16 << 20;
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (error) throw store::read_failure("look at the folder", folder, error.value());
  const i64 needed = bytes + kMargin;
  if (static_cast<i64>(space.available) >= needed) return;
  throw Error(ErrorCode::kNoSpace,
              fmt::format("measuring needs {}, there are {}", format_bytes(needed),
                          format_bytes(static_cast<i64>(space.available))))
      .at({folder, 0, 0, {}})
      .help("measure less with --size");
}

std::string random_bytes(i64 bytes) {
  std::string text(static_cast<size_t>(bytes), '\0');
  std::uint64_t state = 0;
  for (size_t at = 0; at < text.size(); at += sizeof(state)) {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    std::memcpy(text.data() + at, &z, sizeof(z));
  }
  return text;
}

}  // namespace shardtool::api

#include "cli/answer_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <iterator>
#include <random>

#include "cli/launch.h"
#include "lib/api/transfer/sources/layout_source.h"
#include "lib/base/error.h"
#include "lib/base/shell.h"
#include "lib/base/text.h"
#include "lib/store/local/failure.h"
#include "lib/store/local/file.h"
#include "lib/store/local/shared_folder.h"
#include "lib/store/local/tree.h"
#include "lib/store/reader.h"

namespace shardtool::cli {

namespace {

/// Folder of a file, ending in a slash, or empty for the working folder.
std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1);
}

/// Throws kWriteFailed if no file can be created in the folder of this path.
void require_writable_folder(const std::string& path) {
  const std::string folder = folder_of(path);
  const int reason = store::refusal_to_change(folder + ".");
  if (reason == 0) return;
  Error error = store::write_failure("create the file", path, reason);
  if (reason == ENOENT) error.help("create its folder first: mkdir -p " + path_argument(folder));
  throw error;
}

/// True if the path is a regular file, no link to one, whose first bytes are these.
bool begins_with(const std::string& path, std::string_view text) {
  if (std::filesystem::symlink_status(path).type() != std::filesystem::file_type::regular)
    return false;
  const store::File file = store::open_read(path);
  std::string first(text.size(), '\0');
  if (store::identity(file).size < std::ssize(first)) return false;
  store::read_exact(file, std::as_writable_bytes(std::span(first)), 0);
  return first == text;
}

bool is_free(const std::string& path) {
  return std::filesystem::symlink_status(path).type() == std::filesystem::file_type::not_found;
}

Error is_taken(const std::string& path) {
  return Error(ErrorCode::kOutputExists, fmt::format("'{}' exists", quote_for_message(path)))
      .help("choose another name, or remove the file");
}

}  // namespace

void require_free(const std::string& path) {
  if (follows()) return;
  if (!is_free(path)) throw is_taken(path);
  require_writable_folder(path);
}

void require_free_or_begun(const std::string& path, std::string_view beginning) {
  if (follows()) return;
  if (!is_free(path) && !begins_with(path, beginning)) throw is_taken(path);
  require_writable_folder(path);
}

void require_apart(const std::string& path, std::span<const std::string> locations) {
  for (const std::string& location : locations) {
    const std::string place = api::parse_source(location).place;
    if (store::is_remote(place) || !store::leads_into(path, place)) continue;
    throw Error(ErrorCode::kOutputAliasesInput,
                fmt::format("'{}' is in the input {}, and would change it", quote_for_message(path),
                            quote_for_message(location)))
        .help("write the file to another place");
  }
}

void write_answer(const std::string& path, const std::string& text) {
  require_free(path);
  if (!follows()) store::write_new_file(path, text);
}

void replace_answer(const std::string& path, std::string_view beginning, const std::string& text) {
  require_free_or_begun(path, beginning);
  if (follows()) return;
  const std::string folder = folder_of(path);
  store::put_whole(fmt::format("{}.shardtool.{:08x}", folder, std::random_device()()), path,
                   folder + ".", text);
}

}  // namespace shardtool::cli

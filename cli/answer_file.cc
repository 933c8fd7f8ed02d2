#include "cli/answer_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/launch.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/store/local/file.h"

namespace shardtool::cli {

void require_free(const std::string& path) {
  const auto type = std::filesystem::symlink_status(path).type();
  if (follows() || type == std::filesystem::file_type::not_found) return;
  throw Error(ErrorCode::kOutputExists, fmt::format("'{}' exists", quote_for_message(path)))
      .help("choose another name, or remove the file");
}

void write_answer(const std::string& path, const std::string& text) {
  require_free(path);
  if (!follows()) store::write_new_file(path, text);
}

}  // namespace shardtool::cli

#include "cli/answer_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/launch.h"
#include "lib/api/transfer/sources/layout_source.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/store/local/file.h"
#include "lib/store/local/tree.h"
#include "lib/store/reader.h"

namespace shardtool::cli {

void require_free(const std::string& path) {
  const auto type = std::filesystem::symlink_status(path).type();
  if (follows() || type == std::filesystem::file_type::not_found) return;
  throw Error(ErrorCode::kOutputExists, fmt::format("'{}' exists", quote_for_message(path)))
      .help("choose another name, or remove the file");
}

void require_apart(const std::string& path, std::span<const std::string> locations) {
  for (const std::string& location : locations) {
    const std::string place = api::parse_source(location).place;
    if (store::is_remote(place) || !store::leads_into(path, place)) continue;
    throw Error(ErrorCode::kOutputAliasesInput,
                fmt::format("'{}' is in the checkpoint {}, and would change it",
                            quote_for_message(path), quote_for_message(location)))
        .help("write the file beside the checkpoint");
  }
}

void write_answer(const std::string& path, const std::string& text) {
  require_free(path);
  if (!follows()) store::write_new_file(path, text);
}

}  // namespace shardtool::cli

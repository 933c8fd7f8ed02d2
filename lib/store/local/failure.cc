#include "lib/store/local/failure.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace shardtool::store {
namespace {

bool is_space(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
}

bool is_limit(int error_number) {
  return error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM;
}

Error failure(ErrorCode code, std::string_view action, const std::string& path, int error_number) {
  Error error(code,
              fmt::format("cannot {}: {}", action, std::generic_category().message(error_number)));
  error.at({path, 0, 0, {}});
  if (error_number == EMFILE) error.help("raise the number of open files with `ulimit -n`");
  if (error_number == EFBIG) error.help("raise the largest file size with `ulimit -f`");
  return error;
}

}  // namespace

Error write_failure(std::string_view action, const std::string& path, int error_number) {
  const ErrorCode code = is_space(error_number)   ? ErrorCode::kNoSpace
                         : is_limit(error_number) ? ErrorCode::kLimit
                                                  : ErrorCode::kWriteFailed;
  return failure(code, action, path, error_number);
}

Error read_failure(std::string_view action, const std::string& path, int error_number) {
  const bool missing = error_number == ENOENT || error_number == ENOTDIR;
  const ErrorCode code = missing                  ? ErrorCode::kFileMissing
                         : is_limit(error_number) ? ErrorCode::kLimit
                                                  : ErrorCode::kUnreadable;
  return failure(code, action, path, error_number);
}

}  // namespace shardtool::store

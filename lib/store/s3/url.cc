#include "lib/store/s3/url.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::store::s3 {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr size_t kMaxKeyBytes = 1024;

bool is_bucket_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  return name.size() >= 3 && name.size() <= 63 && std::ranges::all_of(name, is_allowed) &&
         name.front() != '.' && name.find("..") == std::string_view::npos;
}

bool is_key(std::string_view key) {
  if (key.size() > kMaxKeyBytes) return false;
  while (!key.empty()) {
    const size_t length = utf8_length(key);
    if (length == 0 || static_cast<unsigned char>(key.front()) < ' ') return false;
    key.remove_prefix(length);
  }
  return true;
}

}  // namespace

std::string Url::text() const {
  return std::string(kScheme) + bucket + (key.empty() ? "" : "/" + key);
}

bool is_url(std::string_view path) {
  return path.starts_with(kScheme);
}

Url parse_url(std::string_view path) {
  const std::string_view rest = is_url(path) ? path.substr(kScheme.size()) : std::string_view();
  const size_t slash = std::min(rest.find('/'), rest.size());
  Url url{std::string(rest.substr(0, slash)),
          std::string(rest.substr(std::min(slash + 1, rest.size())))};
  const bool has_bucket = is_bucket_name(url.bucket);
  if (has_bucket && is_key(url.key)) return url;
  throw Error(ErrorCode::kUsage, "not a place on an object store")
      .note("found", quote_for_message(path))
      .note("expected", has_bucket ? "a prefix of at most 1024 bytes of text"
                                   : "s3://bucket or s3://bucket/prefix, where the bucket's name "
                                     "has 3 to 63 letters, digits, '.', '-' and '_'");
}

}  // namespace shardtool::store::s3

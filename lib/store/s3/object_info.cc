#include "lib/store/s3/object_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/text.h"
#include "lib/store/s3/curl_library.h"
#include "lib/store/s3/xml.h"

namespace shardtool::store::s3 {
namespace {

/// Total size in "bytes 0-9/1234"; -1 if the header does not begin at `offset`.
i64 total_of(std::string_view range, i64 offset) {
  const std::string begin = fmt::format("bytes {}-", offset);
  const size_t slash = range.find('/');
  if (!range.starts_with(begin) || slash == range.npos) return -1;
  return number_of(range.substr(slash + 1));
}

}  // namespace

std::string strong_etag(std::string etag) {
  return etag.starts_with("W/") ? std::string() : etag;
}

ObjectInfo info_in(const HttpAnswer& answer, i64 bytes) {
  const i64 modified_s = curl_library().getdate(answer.header("last-modified").c_str(), nullptr);
  return {bytes, strong_etag(answer.header("etag")), std::max<i64>(modified_s, 0)};
}

Error object_changed(const Url& url, std::string found) {
  return Error(ErrorCode::kInputChanged, "the object is not the one whose header was read")
      .at({url.text(), 0, 0, ""})
      .note("found", std::move(found))
      .help("run again once nothing writes to the input");
}

void require_version(const Url& url, const ObjectInfo& pinned, const HttpAnswer& answer,
                     i64 offset) {
  const std::string range = answer.header("content-range");
  ObjectInfo now = info_in(answer, total_of(range, offset));
  if (now.etag.empty() || pinned.etag.empty()) now.etag = pinned.etag;
  if (now.is_same_version(pinned)) return;
  if (now.bytes != pinned.bytes)
    throw object_changed(
        url, fmt::format("range '{}' of {} bytes", quote_for_message(range), pinned.bytes));
  throw object_changed(url,
                       pinned.etag.empty()
                           ? "Last-Modified " + quote_for_message(answer.header("last-modified"))
                           : "ETag " + quote_for_message(now.etag));
}

}  // namespace shardtool::store::s3

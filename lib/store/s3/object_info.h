#pragma once

#include <string>

#include "lib/base/error.h"
#include "lib/store/s3/http.h"
#include "lib/store/s3/url.h"

namespace shardtool::store::s3 {

/// Description of an object in a listing or a HEAD.
struct ObjectInfo {
  i64 bytes = 0;
  std::string etag;    ///< a strong one, which names the version; else empty
  i64 modified_s = 0;  ///< Unix time of the last change, whole seconds; 0: not told

  bool operator==(const ObjectInfo&) const = default;
  /// True unless another size or ETag, or without an ETag another time, tells of another version.
  bool is_same_version(const ObjectInfo& other) const {
    const bool has_other_time =
        modified_s != 0 && other.modified_s != 0 && modified_s != other.modified_s;
    return bytes == other.bytes && etag == other.etag && !(etag.empty() && has_other_time);
  }
};

/// The ETag if it is strong, else empty: a weak one, W/"...", does not name the bytes (RFC 9110,
/// 8.8.1).
std::string strong_etag(std::string etag);

/// Describes an object by an answer that has it. `bytes` is its size.
ObjectInfo info_in(const HttpAnswer& answer, i64 bytes);

/// Throws kInputChanged if a range that begins at `offset` is of another version than `pinned`.
/// Some stores tell the ETag in some answers only.
void require_version(const Url& url, const ObjectInfo& pinned, const HttpAnswer& answer,
                     i64 offset);
/// The error kInputChanged for an object of another version.
Error object_changed(const Url& url, std::string found);

}  // namespace shardtool::store::s3

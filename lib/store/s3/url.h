#pragma once

#include <string>
#include <string_view>

namespace shardtool::store::s3 {

/// Place on an object store: s3://bucket/key. A key is any text: "..", spaces, '=', '+' and other
/// UTF-8 have no meaning in it.
struct Url {
  std::string bucket;
  std::string key;  ///< empty: the whole bucket

  std::string text() const;
  bool operator==(const Url&) const = default;
};

bool is_url(std::string_view path);

/// Throws kUsage for a bucket that is no DNS name (3 to 63 of a-z 0-9 . - and older _), and for a
/// key that is not UTF-8, has control characters or is longer than 1024 bytes
/// (docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html, object-keys.html).
Url parse_url(std::string_view path);

}  // namespace shardtool::store::s3

#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lib/store/s3/client.h"
#include "lib/store/s3/url.h"

namespace shardtool::store::s3 {

/// An object in the version that was first seen: under its ETag or, on a store without ETags, the
/// time of its last change. Threads may share it.
class Object {
 public:
  /// Throws kFileMissing if there is no such object, and the errors of Client.
  explicit Object(const std::string& path);

  const std::string& path() const { return path_; }
  const ObjectInfo& info() const { return info_; }
  /// Reads all ranges at once, like Client::read. Throws kInputChanged for a range outside of the
  /// object.
  void read(std::span<const RangeRead> ranges) const;
  /// Throws kInputChanged if the object is now another one.
  void check_unchanged() const;

 private:
  std::string path_;
  Url url_;
  ObjectInfo info_;
};

/// Names directly below "s3://bucket/prefix". Listed once and then remembered, with sizes and
/// ETags, so that a run sees one state and asks little.
Listed listing_of(const std::string& path);
/// Same for an object: from the listing of its folder if there was one, else asked for once.
std::optional<ObjectInfo> info_of(const std::string& path);
/// Forgets what is known of a path, of what is below it and of its parent folder.
void forget(const std::string& path);

}  // namespace shardtool::store::s3

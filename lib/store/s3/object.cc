#include "lib/store/s3/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "lib/base/error.h"

namespace shardtool::store::s3 {
namespace {

/// Answers of the store to this process, by path.
struct Known {
  std::mutex mutex;  ///< guards both maps
  std::map<std::string, Listed> listings;
  std::map<std::string, std::optional<ObjectInfo>> objects;
};

Known& known_objects() {
  static Known known;
  return known;
}

std::string parent_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

std::optional<ObjectInfo> found_in(const Listed& listed, const std::string& name) {
  const auto found = std::ranges::lower_bound(listed.objects, name, {}, &ListedObject::name);
  if (found == listed.objects.end() || found->name != name) return std::nullopt;
  return found->info;
}

std::optional<std::optional<ObjectInfo>> remembered(const std::string& path) {
  Known& known = known_objects();
  const std::lock_guard lock(known.mutex);
  const auto listing = known.listings.find(parent_of(path));
  if (listing != known.listings.end())
    return found_in(listing->second, path.substr(path.rfind('/') + 1));
  const auto object = known.objects.find(path);
  if (object == known.objects.end()) return std::nullopt;
  return object->second;
}

}  // namespace

Object::Object(const std::string& path) : path_(path), url_(parse_url(path)) {
  const std::optional<ObjectInfo> info = info_of(path);
  if (!info) {
    throw Error(ErrorCode::kFileMissing, "there is no such object").at({path, 0, 0, ""});
  }
  info_ = *info;
}

void Object::read(std::span<const RangeRead> ranges) const {
  for (const RangeRead& range : ranges) {
    const i64 bytes = std::ssize(range.into);
    if (range.offset >= 0 && bytes <= info_.bytes && range.offset <= info_.bytes - bytes) continue;
    throw Error(ErrorCode::kInputChanged, "the object ends before its data")
        .at({path_, 0, 0, ""})
        .note("found", fmt::format("{} bytes", info_.bytes));
  }
  shared_client().read(url_, info_, ranges);
}

void Object::check_unchanged() const {
  const std::optional<ObjectInfo> now = shared_client().head(url_);
  if (now && now->is_same_version(info_)) return;
  if (now && now->bytes == info_.bytes && now->etag.empty() != info_.etag.empty()) {
    throw Error(ErrorCode::kUnsupported,
                "the object store tells the ETag of an object in some answers only, so that a "
                "change while it is read could not be seen")
        .at({path_, 0, 0, ""})
        .note("found",
              now->etag.empty() ? "no ETag in the answer to HEAD" : "no ETag in the answer before")
        .help("see that no proxy between this machine and the store drops the header");
  }
  throw Error(ErrorCode::kInputChanged, "the object changed while it was read")
      .at({path_, 0, 0, ""});
}

Listed listing_of(const std::string& path) {
  Known& known = known_objects();
  {
    const std::lock_guard lock(known.mutex);
    const auto found = known.listings.find(path);
    if (found != known.listings.end()) return found->second;
  }
  Url url = parse_url(path);
  if (!url.key.empty()) url.key += '/';
  Listed listed = shared_client().list(url);
  const std::lock_guard lock(known.mutex);
  known.listings[path] = listed;
  return listed;
}

std::optional<ObjectInfo> info_of(const std::string& path) {
  if (const auto found = remembered(path)) return *found;
  const Url url = parse_url(path);
  const std::optional<ObjectInfo> info = url.key.empty() ? std::nullopt : shared_client().head(url);
  Known& known = known_objects();
  const std::lock_guard lock(known.mutex);
  known.objects[path] = info;
  return info;
}

void forget(const std::string& path) {
  Known& known = known_objects();
  const std::lock_guard lock(known.mutex);
  const auto is_below = [&path](const auto& entry) {
    return entry.first == path || entry.first.starts_with(path + "/");
  };
  std::erase_if(known.listings, is_below);
  std::erase_if(known.objects, is_below);
  known.listings.erase(parent_of(path));
}

}  // namespace shardtool::store::s3

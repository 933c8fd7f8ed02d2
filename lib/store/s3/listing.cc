#include "lib/store/s3/listing.h"

#include <algorithm>
#include <utility>

#include "lib/base/text.h"
#include "lib/store/s3/credentials.h"
#include "lib/store/s3/refusal.h"

namespace shardtool::store::s3 {

std::optional<std::string> add_page(const XmlElement& page, const Url& url,
                                    const Settings& settings, Listed& listed) {
  if (page.name != "ListBucketResult") {
    throw other_service(bad_listing(url, "an element " + quote_for_message(page.name)), settings);
  }
  for (const XmlElement& entry : page.children) {
    const bool is_object = entry.name == "Contents";
    if (!is_object && entry.name != "CommonPrefixes") continue;
    std::string name = entry.value(is_object ? "Key" : "Prefix");
    if (!name.starts_with(url.key))
      throw bad_listing(url, "a key outside the prefix: " + quote_for_message(name));
    name.erase(0, url.key.size());
    if (!is_object) {
      if (name.ends_with('/')) name.pop_back();
      listed.folders.push_back(std::move(name));
      continue;
    }
    const i64 bytes = number_of(entry.value("Size"));
    if (bytes < 0) throw bad_listing(url, "no size of " + quote_for_message(name));
    if (name.empty()) continue;
    listed.objects.push_back(
        {std::move(name),
         {bytes, strong_etag(entry.value("ETag")), unix_time(entry.value("LastModified"))}});
  }
  if (page.value("IsTruncated") != "true") return std::nullopt;
  return page.value("NextContinuationToken");
}

void sort_names(const Url& url, Listed& listed) {
  std::ranges::sort(listed.objects, {}, &ListedObject::name);
  std::ranges::sort(listed.folders);
  const auto [first, last] = std::ranges::unique(listed.folders);
  listed.folders.erase(first, last);
  const auto twice = std::ranges::adjacent_find(listed.objects, {}, &ListedObject::name);
  if (twice != listed.objects.end())
    throw bad_listing(url, "twice " + quote_for_message(twice->name));
}

Error bad_listing(const Url& url, std::string why) {
  return Error(ErrorCode::kMalformed, "the object store's listing contradicts itself")
      .at({url.text(), 0, 0, ""})
      .note("found", std::move(why));
}

}  // namespace shardtool::store::s3

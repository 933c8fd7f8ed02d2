#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/store/s3/object_info.h"
#include "lib/store/s3/settings.h"
#include "lib/store/s3/url.h"
#include "lib/store/s3/xml.h"

namespace shardtool::store::s3 {

struct ListedObject {
  std::string name;  ///< without the prefix
  ObjectInfo info;
};

/// Names directly below a prefix that ends in '/'.
struct Listed {
  std::vector<ListedObject> objects;
  std::vector<std::string> folders;  ///< without their '/'
};

/// Adds the names on one page of a list of the prefix `url.key`
/// (docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html). Returns the token that asks
/// for the next page, or nullopt after the last one. Throws kMalformed for a page that contradicts
/// itself, such as a key outside the prefix.
std::optional<std::string> add_page(const XmlElement& page, const Url& url,
                                    const Settings& settings, Listed& listed);

/// Sorts the names of all pages; of equal folders one stays. Throws kMalformed if an object is
/// there twice.
void sort_names(const Url& url, Listed& listed);

/// The error kMalformed for a list that contradicts itself.
Error bad_listing(const Url& url, std::string why);

}  // namespace shardtool::store::s3

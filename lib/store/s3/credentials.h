#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "lib/base/checked.h"
#include "lib/store/s3/http.h"
#include "lib/store/s3/settings.h"
#include "lib/store/s3/sign.h"

namespace shardtool::store::s3 {

/// Keys, and when they end.
struct Credentials {
  Keys keys;
  std::string source;      ///< where they are from, for messages
  i64 expires_unix_s = 0;  ///< 0: never
};

/// Sends one request without a signature, and gives the answer of any status.
using Send = std::function<HttpAnswer(HttpRequest request)>;

/// Finds keys in this order: AWS_SKIP_SIGNATURE=true (anonymous), AWS_ACCESS_KEY_ID, the keys of
/// the profile, a web identity token (AWS_WEB_IDENTITY_TOKEN_FILE), the container's address
/// (AWS_CONTAINER_CREDENTIALS_*_URI), the instance's (IMDSv2, unless AWS_EC2_METADATA_DISABLED).
/// With AWS_PROFILE, the profile goes before the environment. Throws kStoreRefused, naming what was
/// looked at, if there are none, and when a named source fails.
Credentials find_credentials(const Settings& settings, const Environment& environment,
                             const Send& send);

/// Seconds since 1970 of "2030-01-02T03:04:05Z"; 0 for other texts.
i64 unix_time(const std::string& iso);

}  // namespace shardtool::store::s3

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lib/base/checked.h"
#include "lib/store/s3/profile.h"
#include "lib/store/s3/sign.h"
#include "lib/store/s3/url.h"

namespace shardtool::store::s3 {

/// Value of an environment variable; empty if it is not set.
using Environment = std::function<std::string(const char* name)>;
std::string process_environment(const char* name);

/// Limits of requests, in milliseconds.
struct Limits {
  i64 connect_ms = 5'000;   ///< until a connection stands
  i64 stall_ms = 15'000;    ///< without a byte, after which a request counts as hung
  i64 give_up_ms = 60'000;  ///< time of a request below Deadline::kLeastSpeed, over all tries
  i64 hedge_ms = 1'000;     ///< after which a slow range is requested a second time, at the least
  int attempts = 8;         ///< of one request, in a row without a byte of the answer
};

/// Address of the store, from environment and profile.
struct Settings {
  std::string endpoint;  ///< "https://host[:port][/path]"; empty: AWS, chosen by region
  std::string region;
  bool is_path_style = false;  ///< bucket in the path, not in the host
  std::string ca_bundle;       ///< file; empty: the system's
  std::string profile_name;
  Section profile;  ///< of config and credentials files together; the latter wins
  Limits limits;

  /// Value in the profile; empty without it.
  std::string in_profile(std::string_view key) const;
};

/// Reads AWS_PROFILE, AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE, AWS_ENDPOINT_URL_S3,
/// AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION, AWS_S3_ADDRESSING_STYLE, AWS_CA_BUNDLE,
/// AWS_MAX_ATTEMPTS and SHARDTOOL_S3_TIMEOUT (seconds below the least speed). An endpoint of one's
/// own has path style, unless said otherwise. The region is us-east-1 unless said. Throws kUsage
/// for a value that is not understood or a profile that is named and absent.
Settings read_settings(const Environment& environment = process_environment);

/// Address of a bucket or an object.
struct Address {
  std::string origin;  ///< "https://host:port"
  std::string host;    ///< as the header says it
  std::string path;    ///< encoded, begins with '/'
};
Address address_of(const Settings& settings, const Url& url);

}  // namespace shardtool::store::s3

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardtool::store::s3 {

/// Secrets with which requests are signed. An empty id stands for anonymous requests.
struct Keys {
  std::string id;
  std::string secret;
  std::string session_token;  ///< of temporary keys; may be empty

  bool is_anonymous() const { return id.empty(); }
};

/// Names and values, not encoded, in any order.
using Query = std::vector<std::pair<std::string, std::string>>;
/// Names in lower case.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// A request as the signature covers it.
struct SignedParts {
  std::string method;
  std::string path;  ///< encoded, begins with '/'
  Query query;
  Headers headers;           ///< all of them are signed; "host" is one
  std::string payload_hash;  ///< SHA-256 in hex
};

/// Place and time for which a signature holds.
struct SigningScope {
  std::string region;
  std::string service;
  std::string time;  ///< UTC, "20130524T000000Z"
};

/// Percent-encodes every byte but A-Z a-z 0-9 - . _ ~, and '/' unless `encodes_slash`.
std::string uri_encoded(std::string_view text, bool encodes_slash = true);
/// Encodes and sorts a query: "a=1&b=".
std::string encoded_query(const Query& query);

/// Value of the header Authorization: AWS Signature Version 4 in one chunk
/// (docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html).
std::string authorization(const SignedParts& request, const Keys& keys, const SigningScope& scope);

}  // namespace shardtool::store::s3

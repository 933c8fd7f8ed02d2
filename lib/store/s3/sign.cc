#include "lib/store/s3/sign.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/sha256.h"
#include "lib/base/text.h"

namespace shardtool::store::s3 {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

/// Drops spaces at both ends and folds those inside to one.
std::string folded(std::string_view value) {
  std::string text;
  for (const char c : value) {
    const bool is_space = c == ' ' || c == '\t';
    if (is_space && (text.empty() || text.back() == ' ')) continue;
    text += is_space ? ' ' : c;
  }
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string names_of(const Headers& sorted) {
  std::string names;
  for (const auto& [name, value] : sorted) names += (names.empty() ? "" : ";") + name;
  return names;
}

std::string canonical_request(const SignedParts& request, const Headers& sorted) {
  std::string text =
      fmt::format("{}\n{}\n{}\n", request.method, request.path, encoded_query(request.query));
  for (const auto& [name, value] : sorted) text += name + ":" + folded(value) + "\n";
  return text + "\n" + names_of(sorted) + "\n" + request.payload_hash;
}

}  // namespace

std::string uri_encoded(std::string_view text, bool encodes_slash) {
  std::string encoded;
  for (const char c : text) {
    if (is_unreserved(c) || (c == '/' && !encodes_slash)) {
      encoded += c;
    } else {
      fmt::format_to(std::back_inserter(encoded), "%{:02X}", c & 0xff);
    }
  }
  return encoded;
}

std::string encoded_query(const Query& query) {
  std::vector<std::pair<std::string, std::string>> encoded;
  for (const auto& [name, value] : query) {
    encoded.emplace_back(uri_encoded(name), uri_encoded(value));
  }
  std::sort(encoded.begin(), encoded.end());
  std::string text;
  for (const auto& [name, value] : encoded) {
    text += (text.empty() ? "" : "&") + name + "=" + value;
  }
  return text;
}

std::string authorization(const SignedParts& request, const Keys& keys, const SigningScope& scope) {
  Headers sorted = request.headers;
  std::sort(sorted.begin(), sorted.end());
  const std::string day = scope.time.substr(0, 8);
  const std::string where = fmt::format("{}/{}/{}/aws4_request", day, scope.region, scope.service);
  const std::string to_sign = fmt::format("{}\n{}\n{}\n{}", kAlgorithm, scope.time, where,
                                          sha256_hex(canonical_request(request, sorted)));
  std::string key = hmac_sha256("AWS4" + keys.secret, day);
  for (const std::string_view part :
       {std::string_view(scope.region), std::string_view(scope.service),
        std::string_view("aws4_request")}) {
    key = hmac_sha256(key, part);
  }
  return fmt::format("{} Credential={}/{}, SignedHeaders={}, Signature={}", kAlgorithm, keys.id,
                     where, names_of(sorted), to_hex(hmac_sha256(key, to_sign)));
}

}  // namespace shardtool::store::s3

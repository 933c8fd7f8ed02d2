#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardtool {

/// Bytes of a SHA-256 digest.
inline constexpr size_t kSha256Bytes = 32;

/// SHA-256 digest of a text (FIPS 180-4), as kSha256Bytes bytes. Files are hashed piece by piece by
/// kernels/sha.
std::string sha256(std::string_view text);
/// The same in lower-case hex.
std::string sha256_hex(std::string_view text);
/// HMAC-SHA256 (RFC 2104) of a message, as kSha256Bytes bytes.
std::string hmac_sha256(std::string_view key, std::string_view message);

}  // namespace shardtool

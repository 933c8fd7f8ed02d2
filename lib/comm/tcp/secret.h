#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardtool::comm {

/// Bytes of a SHA-256 digest.
inline constexpr size_t kDigestBytes = 32;

/// Random bytes from the system. Throws kPeerLost if it fails.
std::string random_bytes(size_t bytes);

/// SHA-256 digest of a text.
std::string sha256(std::string_view text);

/// HMAC-SHA256 (RFC 2104) of a message.
std::string hmac_sha256(std::string_view key, std::string_view message);

/// Compares in a time that depends only on the lengths.
bool equal_in_constant_time(std::string_view a, std::string_view b);

/// Formats two lowercase hexadecimal digits per byte.
std::string hex(std::string_view bytes);

}  // namespace shardtool::comm

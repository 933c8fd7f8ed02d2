#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardtool::comm {

/// Bytes of a SHA-256 digest.
inline constexpr size_t kDigestBytes = 32;

/// Random bytes of the system. Throws kPeerLost when it has none.
std::string random_bytes(size_t bytes);

/// The SHA-256 digest of a text.
std::string sha256(std::string_view text);

/// HMAC-SHA256 (RFC 2104) of a message.
std::string hmac_sha256(std::string_view key, std::string_view message);

/// Compares in a time that depends on the lengths alone.
bool equal_in_constant_time(std::string_view a, std::string_view b);

/// Two lower-case hexadecimal digits per byte.
std::string hex(std::string_view bytes);

}  // namespace shardtool::comm

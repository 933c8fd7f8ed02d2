#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/sha256.h"
#include "lib/comm/tcp/secret.h"

namespace shardtool::comm {

/// Facts that the processes of one launch share and strangers do not. Two processes with any
/// difference in their credentials refuse each other.
struct Credentials {
  std::string secret;  ///< never sent
  std::string launch;  ///< distinguishes launches that have the same secret
  int size = 0;        ///< number of processes
};

/// Two processes prove to each other that they know the secret, without sending it:
///
///     host  -> guest   challenge   a greeting, random bytes
///     guest -> host    answer      random bytes, its rank, proof of the guest
///     host  -> guest   welcome     proof of the host
///
/// A proof is the HMAC-SHA256, keyed with the secret, of the prover's role, both ranks, the number
/// of processes, both random texts and the name of the launch. A proof is therefore invalid on
/// another connection, in the other direction, or for another rank. The guest proves first: a
/// stranger who connects receives no data that depends on the secret.
inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kRankBytes = 8;
inline constexpr std::string_view kGreeting = "shardtool meeting 4\n";
inline constexpr size_t kChallengeBytes = kGreeting.size() + kNonceBytes;
inline constexpr size_t kAnswerBytes = kNonceBytes + kRankBytes + kSha256Bytes;
inline constexpr size_t kWelcomeBytes = kSha256Bytes;

/// Listening side of one connection.
class HostSide {
 public:
  HostSide(const Credentials& credentials, int rank)
      : credentials_(credentials), rank_(rank), nonce_(random_bytes(kNonceBytes)) {}

  std::string challenge() const { return std::string(kGreeting) + nonce_; }

  struct Admission {
    int rank = 0;
    std::string welcome;
  };
  /// Rank of the guest and the reply to send; nullopt for a stranger, or a rank not above the
  /// host's.
  std::optional<Admission> judge(std::string_view answer) const;

 private:
  const Credentials& credentials_;
  int rank_;
  std::string nonce_;
};

/// Connecting side of one connection to a host of a known rank.
class GuestSide {
 public:
  GuestSide(const Credentials& credentials, int rank, int host_rank)
      : credentials_(credentials),
        rank_(rank),
        host_rank_(host_rank),
        nonce_(random_bytes(kNonceBytes)) {}

  /// Answer to the challenge; nullopt if it is malformed.
  std::optional<std::string> answer(std::string_view challenge);
  /// True if the host knows the secret, too.
  bool is_welcome(std::string_view welcome) const;

 private:
  const Credentials& credentials_;
  int rank_;
  int host_rank_;
  std::string nonce_;
  std::string host_nonce_;
};

}  // namespace shardtool::comm

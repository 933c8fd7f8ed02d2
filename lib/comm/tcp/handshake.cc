#include "lib/comm/tcp/handshake.h"

#include <fmt/format.h>

#include <charconv>

namespace shardtool::comm {
namespace {

enum class Prover : char { kHost = 'H', kGuest = 'G' };

struct Connection {
  int host_rank = 0;
  int guest_rank = 0;
  std::string_view host_nonce;
  std::string_view guest_nonce;
};

/// Fixed width of every field but the last makes the text of each connection unique.
std::string proof(Prover prover, const Credentials& credentials, const Connection& connection) {
  return hmac_sha256(
      credentials.secret,
      fmt::format("{}{}{:08}{:08}{:08}{}{}{}", kGreeting, static_cast<char>(prover),
                  connection.host_rank, connection.guest_rank, credentials.size,
                  connection.host_nonce, connection.guest_nonce, credentials.launch));
}

std::optional<int> rank_in(std::string_view digits) {
  int rank = 0;
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, rank);
  return error == std::errc() && at == end ? std::optional(rank) : std::nullopt;
}

}  // namespace

std::optional<HostSide::Admission> HostSide::judge(std::string_view answer) const {
  if (answer.size() != kAnswerBytes) return std::nullopt;
  const std::string_view guest_nonce = answer.substr(0, kNonceBytes);
  const auto rank = rank_in(answer.substr(kNonceBytes, kRankBytes));
  if (!rank || *rank <= rank_ || *rank >= credentials_.size) return std::nullopt;
  const Connection connection{rank_, *rank, nonce_, guest_nonce};
  const std::string expected = proof(Prover::kGuest, credentials_, connection);
  if (!equal_in_constant_time(answer.substr(kNonceBytes + kRankBytes), expected)) {
    return std::nullopt;
  }
  return Admission{*rank, proof(Prover::kHost, credentials_, connection)};
}

std::optional<std::string> GuestSide::answer(std::string_view challenge) {
  if (challenge.size() != kChallengeBytes || !challenge.starts_with(kGreeting)) {
    return std::nullopt;
  }
  host_nonce_ = challenge.substr(kGreeting.size());
  const Connection connection{host_rank_, rank_, host_nonce_, nonce_};
  return nonce_ + fmt::format("{:08}", rank_) + proof(Prover::kGuest, credentials_, connection);
}

bool GuestSide::is_welcome(std::string_view welcome) const {
  const Connection connection{host_rank_, rank_, host_nonce_, nonce_};
  return equal_in_constant_time(welcome, proof(Prover::kHost, credentials_, connection));
}

}  // namespace shardtool::comm

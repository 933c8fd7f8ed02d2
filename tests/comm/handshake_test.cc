#include "lib/comm/tcp/handshake.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace shardtool::comm {
namespace {

/// A launch, and two of its ranks.
struct Pair {
  Credentials credentials;
  int host = 0;
  int guest = 0;
};

Pair any_pair() {
  Pair pair;
  pair.credentials.secret = *rc::gen::container<std::string>(32, rc::gen::arbitrary<char>());
  pair.credentials.launch = *rc::gen::arbitrary<std::string>();
  pair.credentials.size = *rc::gen::inRange(2, 2000);
  pair.host = *rc::gen::inRange(0, pair.credentials.size - 1);
  pair.guest = *rc::gen::inRange(pair.host + 1, pair.credentials.size);
  return pair;
}

std::string changed_at_random(std::string text) {
  const auto at = *rc::gen::inRange<size_t>(0, text.size());
  text[at] = static_cast<char>(text[at] ^ *rc::gen::inRange(1, 256));
  return text;
}

TEST_CASE("processes with the same credentials know each other, and the host learns the rank") {
  CHECK(rc::check([] {
    const Pair pair = any_pair();
    const HostSide host(pair.credentials, pair.host);
    GuestSide guest(pair.credentials, pair.guest, pair.host);
    const auto answer = guest.answer(host.challenge());
    RC_ASSERT(answer.has_value());
    const auto admission = host.judge(*answer);
    RC_ASSERT(admission.has_value());
    RC_ASSERT(admission->rank == pair.guest);
    RC_ASSERT(guest.is_welcome(admission->welcome));
    RC_ASSERT(host.challenge().size() == kChallengeBytes);
    RC_ASSERT(answer->size() == kAnswerBytes);
    RC_ASSERT(admission->welcome.size() == kWelcomeBytes);
  }));
}

TEST_CASE("a message with any byte changed is refused") {
  CHECK(rc::check([] {
    const Pair pair = any_pair();
    const HostSide host(pair.credentials, pair.host);
    GuestSide guest(pair.credentials, pair.guest, pair.host);
    const auto misled = guest.answer(changed_at_random(host.challenge()));
    RC_ASSERT((!misled || !host.judge(*misled)));
    const auto answer = guest.answer(host.challenge());
    RC_ASSERT(!host.judge(changed_at_random(*answer)));
    RC_ASSERT(!host.judge(answer->substr(1)));
    RC_ASSERT(!guest.is_welcome(changed_at_random(host.judge(*answer)->welcome)));
  }));
}

TEST_CASE("processes whose secret, launch, size or ranks differ refuse each other") {
  CHECK(rc::check([] {
    const Pair pair = any_pair();
    Credentials other = pair.credentials;
    int meant = pair.host;
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        other.secret = changed_at_random(other.secret);
        break;
      case 1:
        other.launch += "x";
        break;
      case 2:
        ++other.size;
        break;
      default:
        meant += 1;
    }
    const HostSide host(pair.credentials, pair.host);
    GuestSide guest(other, pair.guest, meant);
    RC_ASSERT(!host.judge(*guest.answer(host.challenge())));
    // An impostor that accepts its guest as genuine.
    const HostSide impostor(other, meant);
    GuestSide genuine(pair.credentials, pair.guest, pair.host);
    genuine.answer(impostor.challenge());
    RC_ASSERT(!genuine.is_welcome(std::string(kWelcomeBytes, '\0')));
  }));
}

TEST_CASE("a proof holds on no other connection, and not as the proof of the other side") {
  CHECK(rc::check([] {
    const Pair pair = any_pair();
    const HostSide host(pair.credentials, pair.host);
    GuestSide guest(pair.credentials, pair.guest, pair.host);
    const std::string answer = *guest.answer(host.challenge());
    RC_ASSERT(!HostSide(pair.credentials, pair.host).judge(answer));
    RC_ASSERT(!guest.is_welcome(std::string_view(answer).substr(kNonceBytes + kRankBytes)));
    const std::string welcome = host.judge(answer)->welcome;
    GuestSide later(pair.credentials, pair.guest, pair.host);
    later.answer(host.challenge());
    RC_ASSERT(!later.is_welcome(welcome));
  }));
}

TEST_CASE("a rank that is not above the host's, or beyond the launch, is refused") {
  const Credentials credentials{"a secret of the launch", "job", 4};
  const HostSide host(credentials, 1);
  for (const int rank : {0, 1, 4, 5, 99'999'999}) {
    CAPTURE(rank);
    GuestSide guest(credentials, rank, 1);
    CHECK_FALSE(host.judge(*guest.answer(host.challenge())));
  }
}

TEST_CASE("the secret is not sent") {
  const Credentials credentials{"a secret of the launch", "job", 2};
  const HostSide host(credentials, 0);
  GuestSide guest(credentials, 1, 0);
  const std::string answer = *guest.answer(host.challenge());
  const std::string all = host.challenge() + answer + host.judge(answer)->welcome;
  CHECK(all.find(credentials.secret) == std::string::npos);
}

}  // namespace
}  // namespace shardtool::comm

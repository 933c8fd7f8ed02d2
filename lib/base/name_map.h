#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace shardtool {

/// Key of a hash function.
struct HashKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

/// SipHash-1-3 (Aumasson, Bernstein): 64 bits that nobody can steer who does not know the key.
std::uint64_t sip_hash(std::string_view text, HashKey key);

/// Hashes names under a key that is drawn once per process. std::hash has a fixed key, and
/// MurmurHash, which libstdc++ uses, has collisions that hold under every key: 65,536 such names in
/// one file would make each lookup a walk over all of them.
struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const;
};

/// Hash tables for names that come from files. Their order differs from run to run: nothing
/// iterates over them.
template <class Value>
using NameMap = std::unordered_map<std::string, Value, NameHash, std::equal_to<>>;
/// The same over names that live elsewhere.
template <class Value>
using NameViewMap = std::unordered_map<std::string_view, Value, NameHash, std::equal_to<>>;
using NameViewSet = std::unordered_set<std::string_view, NameHash, std::equal_to<>>;

}  // namespace shardtool

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

/// SipHash-1-3 (Aumasson, Bernstein), 64 bits. Collisions cannot be constructed without the key.
std::uint64_t sip_hash(std::string_view text, HashKey key);

/// Hashes names with a random key drawn once per process. std::hash has a fixed key, and
/// MurmurHash, which libstdc++ uses, has collisions for every key: 65,536 such names in one file
/// would make each lookup scan all of them.
struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const;
};

/// Hash table for names that come from files. Its order differs from run to run, so it is never
/// iterated.
template <class Value>
using NameMap = std::unordered_map<std::string, Value, NameHash, std::equal_to<>>;
/// Same, with names owned by the caller.
template <class Value>
using NameViewMap = std::unordered_map<std::string_view, Value, NameHash, std::equal_to<>>;
using NameViewSet = std::unordered_set<std::string_view, NameHash, std::equal_to<>>;

}  // namespace shardtool

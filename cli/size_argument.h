#pragma once

#include <string_view>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::cli {

// Numbers as they are typed. All throw kUsage, naming the flag, what was typed and what is
// accepted.

/// A size in bytes: digits, optionally a fraction or an exponent, optionally a unit.
///   "1.5GiB" = 1610612736   "500MB" = 500000000   "2e9" = 2000000000   "4096" = 4096
/// K, M, G, T, P count in 1000, with an i in 1024; the B may be absent and case does not matter.
/// The result is a whole number of bytes >= 1.
i64 parse_size(std::string_view flag, std::string_view text);

/// A whole number in [least, most], plain digits only.
i64 parse_count(std::string_view flag, std::string_view text, i64 least, i64 most);

/// "0-3,7" = 0 1 2 3 7. Sorted; every rank once; at most 65536 of them.
std::vector<i64> parse_ranks(std::string_view flag, std::string_view text);

}  // namespace shardtool::cli

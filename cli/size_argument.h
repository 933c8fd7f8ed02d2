#pragma once

#include <string_view>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::cli {

// Parsers of numeric arguments. All throw kUsage with the flag, the typed text and the accepted
// form.

/// The syntax of every SIZE, for the help and the manual.
inline constexpr std::string_view kSizeSyntax =
    "A SIZE is a number of bytes, such as 4096, 2e9, 500MB or 1.5GiB: K, M, G, T and P count in "
    "1000, Ki, Mi, Gi, Ti and Pi in 1024, and a number without a unit is bytes.";

/// Parses a size in bytes: digits, optionally a fraction or an exponent, optionally a unit.
///   "1.5GiB" = 1610612736   "500MB" = 500000000   "2e9" = 2000000000   "4096" = 4096
/// K, M, G, T, P are powers of 1000, with an i of 1024. The B is optional, case is ignored. The
/// result is a whole number of bytes >= `least`.
i64 parse_size(std::string_view flag, std::string_view text, i64 least = 1);

/// Parses a whole number in [least, most], plain digits only.
i64 parse_count(std::string_view flag, std::string_view text, i64 least, i64 most);

/// Parses a rank list: "0-3,7" = 0 1 2 3 7. Sorted, without duplicates, at most 65536 ranks.
std::vector<i64> parse_ranks(std::string_view flag, std::string_view text);

}  // namespace shardtool::cli

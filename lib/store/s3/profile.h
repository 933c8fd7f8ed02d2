#pragma once

#include <map>
#include <string>
#include <string_view>

namespace shardtool::store::s3 {

/// Values of one section of an AWS file, by key.
using Section = std::map<std::string, std::string, std::less<>>;

/// Reads `[name]` sections of `key = value` lines, as ~/.aws/credentials and ~/.aws/config have
/// them (docs.aws.amazon.com/cli/latest/userguide/cli-configure-files.html). "[profile x]" is
/// section "x"; an indented line below `s3 =` has the key "s3.KEY". Comments begin with # or ;.
std::map<std::string, Section, std::less<>> parse_profiles(std::string_view text);

}  // namespace shardtool::store::s3

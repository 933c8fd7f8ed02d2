#pragma once

#include <string>
#include <string_view>

namespace shardtool::mapping {

/// The name with every dotted part that is a number replaced by *: what tensors of one kind share,
/// and a glob that matches them.
std::string name_form(std::string_view name);

}  // namespace shardtool::mapping

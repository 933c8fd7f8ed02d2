#pragma once

#include <string>

namespace shardtool::cli {

/// Formats a number of a plan's document as readers want it, "12 GiB" for the field "total_bytes":
/// by the field's name as bytes, as a time or as a count. Other values stay as they are; an absent
/// one, which is empty, is "absent".
std::string value_text(const std::string& field, const std::string& json);

/// "+12 %" for a number that grew; empty if it was not above 0.
std::string growth_text(double before, double after);
/// The same of JSON values; empty unless both are numbers.
std::string growth_text(const std::string& before, const std::string& after);

/// True for the JSON text of a number.
bool is_number(const std::string& json);

}  // namespace shardtool::cli

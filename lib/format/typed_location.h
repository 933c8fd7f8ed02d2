#pragma once

#include <span>
#include <string>
#include <vector>

namespace shardtool::format {

/// Location as users type it: [FORMAT:]PLACE[#PREFIX].
struct TypedLocation {
  /// One of format_names() to insist on, or of the caller's forms; empty: what the place shows.
  std::string format;
  std::string place;   ///< path of a folder or a file, without a slash at its end
  std::string prefix;  ///< of the tensors to keep; empty: all of them
};

/// Takes a location apart and resolves hf:// names. What exists under the whole name is a place.
/// `forms` are further words for FORMAT, of a caller that reads more than formats. Throws kUsage,
/// with a suggestion, for an unknown format in front of a place that exists, and the errors of
/// resolve_hf_location.
TypedLocation parse_location(const std::string& location, std::span<const std::string> forms = {});

/// Throws kUsage for an empty list of locations, which is what a pattern without a match gives, and
/// for files without weights, which a pattern for all files of a folder gives.
void require_locations(const std::vector<std::string>& locations);

}  // namespace shardtool::format

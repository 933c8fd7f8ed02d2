#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/transform.h"
#include "lib/base/json_reader.h"
#include "lib/format/manifest/manifest.h"
#include "lib/store/local/output_files.h"
#include "lib/store/local/output_place.h"

namespace shardtool::api {

/// Record of a share that has ended, in a hidden file beside the output
/// (store/local/output_claim.h). It appears only after all bytes of the share are durable. The text
/// has one line of JSON with every field but the last, and the XXH3-128 of the rest, which is a
/// manifest.
struct ShareRecord {
  Share share;
  std::string run;                         ///< RunIdentity::text()
  i64 tensors = 0;                         ///< of the whole output
  std::vector<store::WrittenFile> others;  ///< files beside the weights that the share wrote
  format::Manifest manifest;               ///< of the output, with the tensors of the share only
  /// Names of its tensors with padding that was filled after it was zero. A second process of the
  /// share may have zeroed it again and died, so that they are read back before they are published.
  std::vector<std::string> filled = {};
};

std::string to_text(const ShareRecord& record);
/// Throws kManifestInvalid.
ShareRecord parse_share_record(const std::string& text, const std::string& path);

/// SHA-256 of files in the record of a run that wants one, which finish() replaces.
extern const std::string kUnknownSha256;

/// Reads a share's number or a count of shares. Throws the reader's error for one out of range.
int read_share_number(JsonReader& in);

/// Share of "3-of-8.share"; nullopt for any other name.
std::optional<Share> share_of_name(std::string_view name);

/// Shares of the run `id` with a record, sorted by their count and their number.
std::vector<Share> ended_shares(const store::OutputPlace& place, const std::string& id);

}  // namespace shardtool::api

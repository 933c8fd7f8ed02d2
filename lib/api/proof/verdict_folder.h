#pragma once

#include <string>
#include <vector>

#include "lib/api/validate.h"
#include "lib/base/error.h"

namespace shardtool::api {

/// Record of a share of a validation that has ended.
struct VerdictRecord {
  std::string run;  ///< hash of the inputs and options, the same for all shares
  double require_coverage = 0;
  ValidateReport report;  ///< with its share
};

/// Folder, or s3://bucket/prefix, in which shares leave their records, named "3-of-8.verdict". A
/// record has one line with the XXH3-128 of the rest, which is JSON. It appears whole or not at
/// all, so that a share may run twice.
class VerdictFolder {
 public:
  explicit VerdictFolder(std::string path) : path_(std::move(path)) {}

  /// Creates the folder. Throws kOtherRun if it has a record of another run, or of other shares.
  void begin(const std::string& run, const Share& share) const;
  void put(const VerdictRecord& record) const;
  /// Shares with a record, by number; none if there is no such folder.
  std::vector<Share> ended() const;
  /// Throws kManifestInvalid for a damaged record, and the errors of reading.
  VerdictRecord read(const Share& share) const;
  /// Error for a record of another validation.
  Error other_run(const Share& share) const;

 private:
  std::string path_of(const Share& share) const;

  std::string path_;
};

}  // namespace shardtool::api

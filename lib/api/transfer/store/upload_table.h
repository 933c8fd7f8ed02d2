#pragma once

#include <string>
#include <vector>

#include "lib/store/s3/parted_output.h"

namespace shardtool::api {

/// Uploads of a run to a store; every process of the run uses the same ones.
struct UploadTable {
  std::string run;                               ///< RunIdentity::text()
  std::string about;                             ///< exec::JournalTitle::about
  bool copies = false;                           ///< the store copies what it can (copies.h)
  std::vector<store::s3::PartedObject> objects;  ///< one per file of the plan

  std::string to_text() const;
  bool has_same_uploads(const UploadTable& other) const;
};

/// Reads UploadTable::to_text(). Names in the text are below `prefix`, an s3://bucket/prefix.
/// Throws kManifestInvalid.
UploadTable parse_uploads(const std::string& text, const std::string& prefix);

}  // namespace shardtool::api

#include "lib/check/data/file_hash.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lib/check/container.h"
#include "lib/exec/files/file_hash.h"
#include "lib/format/hugging_face/hf_cache.h"
#include "lib/store/reader.h"

namespace shardtool::check {
namespace {

namespace fs = std::filesystem;
using format::Checkpoint;
using format::FileState;

/// File, its expected hash, and the finding for a mismatch.
struct Claim {
  exec::FileToHash file;
  std::string expected;
  Finding finding;
};

void add_manifest_claims(const Checkpoint& checkpoint, std::vector<Claim>& claims) {
  if (!checkpoint.manifest) return;
  // Files that only .metadata of a DCP folder names come after those of the manifest.
  for (size_t f = 0; f < checkpoint.manifest->files.size(); ++f) {
    const auto& file = checkpoint.files[f];
    const std::string& expected = checkpoint.manifest->files[f].sha256;
    if (expected.empty() || file.state != FileState::kRead) continue;
    Claim& claim = claims.emplace_back();
    claim.file = {file.path, file.identity.size, exec::FileHash::kSha256};
    claim.expected = expected;
    claim.finding = {.rule = CheckRule::kFileHash,
                     .message = "the file is not the one that was written",
                     .file = path_in(checkpoint.folder(), file.name),
                     .fix = "copy the file again, or write the output again"};
  }
}

/// Names of the files of a snapshot: all in the folder, or the requested one.
std::vector<std::string> snapshot_files(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  std::error_code error;
  if (!fs::is_directory(checkpoint.path, error)) {
    for (const auto& file : checkpoint.files) names.push_back(file.name);
    return names;
  }
  for (const auto& entry : fs::directory_iterator(checkpoint.path, error)) {
    if (entry.is_regular_file(error)) names.push_back(entry.path().filename().string());
  }
  return names;
}

void add_blob_claims(const Checkpoint& checkpoint, std::vector<Claim>& claims) {
  const std::string folder = checkpoint.folder();
  if (!format::is_hf_snapshot(folder)) return;
  for (const std::string& name : snapshot_files(checkpoint)) {
    std::error_code error;
    const fs::path blob = fs::canonical(fs::path(folder) / name, error);
    if (error) continue;  // a dangling link is a missing file
    const auto named = format::blob_name(blob.string());
    if (!named) continue;
    Claim& claim = claims.emplace_back();
    claim.file = {blob.string(), static_cast<i64>(fs::file_size(blob, error)),
                  named->size() == 64 ? exec::FileHash::kSha256 : exec::FileHash::kGitBlob};
    claim.expected = *named;
    claim.finding = {.rule = CheckRule::kBlobName,
                     .message = "the file is not the one that the hub has under its name",
                     .file = path_in(folder, name),
                     .fix = "delete the blob, and run `hf download` again"};
  }
}

/// Drops and reports files that cannot be opened.
void drop_unreadable(std::vector<Claim>& claims, Findings& findings) {
  std::erase_if(claims, [&](const Claim& claim) {
    try {
      store::open_reader(claim.file.path);
      return false;
    } catch (const Error& error) {
      findings.add(finding_of(CheckRule::kFileUnreadable, error, claim.finding.file));
      return true;
    }
  });
}

}  // namespace

void check_file_hashes(const Checkpoint& checkpoint, const exec::Resources& resources,
                       Findings& findings) {
  std::vector<Claim> claims;
  if (findings.wants(CheckRule::kFileHash)) add_manifest_claims(checkpoint, claims);
  if (findings.wants(CheckRule::kBlobName)) add_blob_claims(checkpoint, claims);
  drop_unreadable(claims, findings);
  if (claims.empty()) return;
  std::vector<exec::FileToHash> files;
  for (const Claim& claim : claims) files.push_back(claim.file);
  const std::vector<std::string> hashes = exec::hash_files(files, resources);
  for (size_t i = 0; i < claims.size(); ++i) {
    if (hashes[i] == claims[i].expected) continue;
    const char* kind = files[i].hash == exec::FileHash::kSha256 ? "sha256 " : "git blob ";
    Finding finding = std::move(claims[i].finding);
    finding.found = kind + hashes[i];
    finding.expected = kind + claims[i].expected;
    findings.add(std::move(finding));
  }
}

}  // namespace shardtool::check

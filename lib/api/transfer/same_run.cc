#include "lib/api/transfer/same_run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "kernels/xxh3/xxh3.h"
#include "lib/base/text.h"
#include "lib/comm/facts.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;

std::string hash_of(const std::string& text) {
  return "XXH3 " + kernels::xxh3_hex(std::as_bytes(std::span(text)));
}

/// "2026-11-23 10:00:00.000000001 UTC".
std::string time_text(i64 nanoseconds) {
  constexpr i64 kSecond = 1'000'000'000;
  const std::time_t seconds = nanoseconds / kSecond;
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:09} UTC", fmt::gmtime(seconds), nanoseconds % kSecond);
}

std::string state_of(const format::SourceFile& file) {
  return fmt::format("{} bytes, inode {}, written {}, changed {}", format_count(file.identity.size),
                     file.identity.inode, time_text(file.identity.mtime_ns),
                     time_text(file.identity.ctime_ns));
}

comm::Facts source_facts(const LogicalCheckpoint& source) {
  comm::Facts facts;
  for (const format::Checkpoint& part : source.parts) {
    const std::string folder =
        source.parts.size() > 1 ? (fs::path(part.path).filename() / "").string() : "";
    for (const format::SourceFile& file : part.files) {
      facts.emplace_back(folder + file.name, state_of(file));
    }
  }
  return facts;
}

comm::Facts target_facts(const WriteRun& run) {
  comm::Facts facts{{"mesh", to_string(run.target.mesh)}, {"mapping", hash_of(run.target.mapping)}};
  for (const format::PlannedFile& file : run.plan.files) {
    facts.emplace_back(file.name, format_count(file.size) + " bytes");
  }
  return facts;
}

/// Compares the readable facts first, then the hash, which covers the rest.
void require_same(Team& team, const comm::Facts& facts, const comm::Facts& hash,
                  const Error& error) {
  comm::require_same(team.comm(), facts, error);
  comm::require_same(team.comm(), hash, error);
}

}  // namespace

void require_same_run(Team& team, const WriteRun& run, const RunIdentity& identity) {
  const auto all = team.comm().all_gather(identity.text());
  const auto is_same = [&](const std::string& one) { return one == all.front(); };
  if (std::ranges::all_of(all, is_same)) return;
  require_same(
      team, source_facts(run.source), {{"headers and digests", identity.source}},
      Error(ErrorCode::kInputChanged, "the processes of this launch do not see the same source")
          .help("give every process the same files, in a folder that all of them see, and "
                "change none while they run"));
  require_same(
      team, target_facts(run), {{"headers and places of elements", identity.target}},
      Error(ErrorCode::kUsage, "the processes of this launch would not write the same output")
          .help("give every process the same mapping and config.json"));
}

}  // namespace shardtool::api

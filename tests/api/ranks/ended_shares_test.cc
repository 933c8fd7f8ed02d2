// Files that an ended share has written, and that something has damaged before the last one ends.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "lib/format/manifest/manifest.h"
#include "tests/api/disturbed_jobs.h"
#include "tests/support/faulty_syscalls.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;
using testing::FaultySyscalls;

/// Two shares of a split; the first has ended.
class TwoShares {
 public:
  TwoShares() {
    first = run(0, true);
    for (const std::string& name : store::names_in(jobs.folder.path())) {
      if (name.ends_with(".tmp")) file = jobs.folder / name + "/model-rank-0-part-0.safetensors";
    }
    REQUIRE(fs::exists(file));
  }

  TransformReport run(int number, bool verify) const {
    WriteOptions write = jobs.careful(false);
    write.share = Share{number, 2};
    write.verify = verify;
    write.resources.threads = 1;
    return jobs.run(Verb::kSplit, write);
  }

  const FaultySyscalls no_syncs;
  const Jobs jobs;
  TransformReport first;
  std::string file;  ///< in the hidden folder
};

/// Runs one of three shares.
TransformReport run_share(const Jobs& jobs, int number) {
  WriteOptions write = jobs.careful(false);
  write.share = Share{number, 3};
  write.resources.threads = 1;
  return jobs.run(Verb::kSplit, write);
}

/// Overwrites the last bytes of rank 1's shard of a tensor, which are padding, in the hidden
/// folder.
void overwrite_padding(const Jobs& jobs, const std::string& tensor, char with) {
  const std::string path = jobs.folder / "split/manifest.json";
  const format::Manifest manifest =
      format::parse_manifest(test::folder_content(jobs.folder / "split").at("manifest.json"), path);
  const auto record = std::ranges::find(manifest.tensors, tensor, &format::TensorRecord::name);
  REQUIRE(record != manifest.tensors.end());
  const format::ShardRecord& shard = record->shards.back();
  const std::string& file = manifest.files[static_cast<size_t>(shard.file)].name;
  for (const std::string& name : store::names_in(jobs.folder.path())) {
    if (!name.ends_with(".tmp")) continue;
    std::fstream data(jobs.folder / name + "/" + file,
                      std::ios::in | std::ios::out | std::ios::binary);
    data.seekp(shard.offset + shard.bytes - 16);
    for (int i = 0; i < 16; ++i) data.put(with);
  }
}

}  // namespace

TEST_CASE("a share does not give a file that was cut off its size again") {
  const TwoShares shares;
  const auto size = fs::file_size(shares.file);
  fs::resize_file(shares.file, size - 1);
  CHECK_ERROR(kFileMissing, shares.run(1, false));
  CHECK(fs::file_size(shares.file) == size - 1);
  CHECK_FALSE(shares.jobs.is_published());
}

TEST_CASE("a file beside the weights that is gone is named, and written by the first share again") {
  const Jobs jobs;
  const FaultySyscalls no_syncs;
  jobs.folder.write("whole/config.json", "{}");
  for (const int number : {0, 1}) run_share(jobs, number);
  for (const std::string& name : store::names_in(jobs.folder.path())) {
    if (name.ends_with(".tmp")) CHECK(fs::remove(jobs.folder / (name + "/config.json")));
  }
  const auto error = testing::error_of([&] { return run_share(jobs, 2); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kFileMissing);
  CHECK(error->place()->file.ends_with("/config.json"));
  CHECK(error->help_lines() == std::vector<std::string>{"run share 0/3 again"});
  CHECK_FALSE(jobs.is_published());
  CHECK(run_share(jobs, 0).share->published);
  CHECK(fs::exists(jobs.folder / "out/config.json"));
}

TEST_CASE("with --verify the share that publishes reads back what all have written") {
  TwoShares shares;
  const TransformReport last = shares.run(1, true);
  CHECK(last.share->published);
  CHECK(shares.jobs.is_right(Verb::kSplit));
  CHECK(*last.bytes_verified > *shares.first.bytes_verified + last.share->bytes / 2);
}

TEST_CASE("a changed byte of another share is found before it is published with --verify") {
  const TwoShares shares;
  // The first tensor of the file: the first share moves it.
  std::uint64_t header = 0;
  std::ifstream(shares.file, std::ios::binary)
      .read(reinterpret_cast<char*>(&header), sizeof(header));
  test::flip_bits(shares.file, static_cast<std::streamoff>(sizeof(header) + header + 100));
  CHECK_ERROR(kDataMismatch, shares.run(1, true));
  CHECK_FALSE(shares.jobs.is_published());
}

TEST_CASE("a share that finds its padding damaged writes it again") {
  for (const std::string tensor : {"zeroed.0", "padded.0"}) {
    const Jobs jobs;
    const FaultySyscalls no_syncs;
    for (const int number : {0, 1}) run_share(jobs, number);
    overwrite_padding(jobs, tensor, '!');
    for (const int number : {0, 1, 2}) run_share(jobs, number);
    CHECK(jobs.is_right(Verb::kSplit));
  }
}

TEST_CASE("padding that a copy of a share has zeroed before it died is found before publishing") {
  const Jobs jobs;
  const FaultySyscalls no_syncs;
  for (const int number : {0, 1}) run_share(jobs, number);
  overwrite_padding(jobs, "padded.0", '\0');
  const auto error = testing::error_of([&] { return run_share(jobs, 2); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kDataMismatch);
  CHECK(error->tensor_name() == "padded.0");
  CHECK_FALSE(jobs.is_published());
  // The share that has the tensor finds the damage, and publishes; those before it tell of it
  // again.
  for (const int number : {0, 1, 2}) {
    const auto again = testing::error_of([&] { return run_share(jobs, number); });
    if (again) CHECK(again->code() == ErrorCode::kDataMismatch);
  }
  CHECK(jobs.is_right(Verb::kSplit));
}

}  // namespace shardtool::api

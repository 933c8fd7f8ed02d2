#include "lib/api/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/folder_listing.h"
#include "lib/format/manifest/output_reader.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

/// Ranges to read, with the tensor of each.
struct Expected {
  std::vector<exec::WrittenRange> ranges;
  std::vector<const std::string*> tensors;  ///< null for a header
};

/// Expects the bytes around the data as they are planned.
void expect_frame(const WriteRun& run, size_t file, Expected& expected) {
  kernels::Xxh3 hash;
  exec::WrittenRange range{static_cast<int>(file), 0, 0, {}};
  const auto add_range = [&] {
    if (range.bytes == 0) return;
    range.xxh3 = hash.value();
    expected.ranges.push_back(range);
    expected.tensors.push_back(nullptr);
  };
  write_file_frame(run.source, run.target, run.plan, file, [&](i64 offset, std::string_view text) {
    if (offset != range.offset + range.bytes) {
      add_range();
      hash = kernels::Xxh3();
      range.offset = offset;
      range.bytes = 0;
    }
    hash.update(std::as_bytes(std::span(text)));
    range.bytes += std::ssize(text);
  });
  add_range();
}

void expect_tensor(const WriteRun& run, size_t t, const ExpectedHash& hash, Expected& expected) {
  const exec::TensorMove& move = run.moves[t];
  std::vector<kernels::Hash128> hashes;
  for (size_t h = 0; h < move.to.slots.size(); ++h) {
    const auto known = hash(t, h);
    if (!known) throw no_hash(move.name);
    hashes.push_back(*known);
  }
  add_ranges(run, t, hashes, expected.ranges);
  expected.tensors.resize(expected.ranges.size(), &move.name);
}

}  // namespace

Error no_hash(const std::string& tensor) {
  return Error(ErrorCode::kDataMismatch, "the manifest has no hash to compare with")
      .tensor(tensor)
      .help(
          "an object store has copied the tensor, and nobody has read it: write the output again "
          "with --force --verify");
}

i64 verify_output(const WriteRun& run, const std::string& folder, const ExpectedHash& hash,
                  const VerifiedPart& part, const exec::Resources& resources) {
  Expected expected;
  std::vector<exec::SourceFile> files;
  for (const format::PlannedFile& file : run.plan.files) {
    if (part.headers) expect_frame(run, files.size(), expected);
    files.emplace_back(folder + "/" + file.name);
  }
  for (size_t t = 0; t < run.moves.size(); ++t) {
    if (part.tensors[t]) expect_tensor(run, t, hash, expected);
  }
  const std::vector<bool> intact = exec::read_back(expected.ranges, files, resources);
  const auto damaged = std::find(intact.begin(), intact.end(), false) - intact.begin();
  if (damaged < std::ssize(intact)) {
    const exec::WrittenRange& range = expected.ranges[static_cast<size_t>(damaged)];
    const std::string* tensor = expected.tensors[static_cast<size_t>(damaged)];
    Error error(ErrorCode::kDataMismatch,
                tensor ? "a shard is not what was written" : "a header is not what was written");
    if (tensor) error.tensor(*tensor);
    throw error.at({files[static_cast<size_t>(range.file)].file().path(), 0, 0, {}})
        .note("bytes", fmt::format("[{}, {})", range.offset, range.offset + range.bytes))
        .help("write the output again with --force; if that fails, too, test disk and memory");
  }
  i64 bytes = 0;
  for (const exec::WrittenRange& range : expected.ranges) bytes += range.bytes;
  return bytes;
}

void look_for_extra_files(const std::string& output, const std::set<std::string>& own, bool verify,
                          std::vector<std::string>& warnings) {
  store::forget_listing(output);
  // list_folder would refuse a prefix with the mark of a run.
  const format::FolderListing listing = store::is_remote(output)
                                            ? format::sort_by_purpose(store::names_below(output))
                                            : format::list_folder(output);
  const std::vector<format::Warning> extra = format::extra_files(own, listing);
  if (verify && !extra.empty()) {
    throw Error(ErrorCode::kDataMismatch, "a weights file beside the output is not of the output")
        .at({output + "/" + extra.front().file, 0, 0, {}})
        .note("found", plural(std::ssize(extra), "such file"))
        .help("remove it, or put it elsewhere: the output is complete without it");
  }
  for (const format::Warning& warning : extra) warnings.push_back(text_of(warning));
}

}  // namespace shardtool::api

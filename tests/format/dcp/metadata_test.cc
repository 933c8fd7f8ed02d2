#include "lib/format/dcp/metadata.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <functional>

#include "lib/format/checkpoint.h"
#include "lib/format/dcp/files.h"
#include "lib/format/dcp/pickle_writer.h"
#include "lib/format/shard_files.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::format::dcp {
namespace {

using test::TempFolder;
using testing::error_of;

/// A checkpoint of one tensor [4, 2] in two chunks of one file, in all its parts.
struct Sample {
  std::vector<TensorSpec> parts{{"w", Dtype::kU8, {2, 2}}, {"w", Dtype::kU8, {2, 2}}};
  std::vector<Shape> begins{{0, 0}, {2, 0}};
  Shape shape{4, 2};
  std::string file = "__0_0.distcp";
  size_t recorded = 2;  ///< chunks in .metadata

  TensorTable table() const { return TensorTable(parts); }
  FilePlan plan() const {
    const TensorTable tensors = table();
    FileRequest request{tensors, 1 << 20};
    request.name_of = [this](size_t, size_t) { return file; };
    return plan_files(request);
  }
  std::string data() const {
    const FilePlan planned = plan();
    std::string bytes(static_cast<size_t>(planned.files[0].size), '\7');
    frame_file(planned.files[0], table(), [&](i64 offset, std::string_view frame) {
      bytes.replace(static_cast<size_t>(offset), frame.size(), frame);
    });
    return bytes;
  }
  std::string metadata() const {
    const FilePlan planned = plan();
    const auto placed = [&](size_t) {
      PlacedTensor tensor{"w", parts[0].dtype, shape, {}};
      for (size_t p = 0; p < recorded; ++p) {
        tensor.parts.push_back({begins[p], parts[p].shape, 0, planned.places[p].offset});
      }
      return tensor;
    };
    std::string text;
    write_metadata({planned.files, 1, placed}, [&](std::string_view piece) { text += piece; });
    return text;
  }
};

std::optional<Error> error_of_opening(const std::string& metadata, const std::string& data) {
  const TempFolder folder;
  folder.write(".metadata", metadata);
  folder.write("__0_0.distcp", data);
  return error_of([&] { open_checkpoint(folder.path()); });
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  REQUIRE(at != text.npos);
  return text.replace(at, what.size(), by);
}

/// Adds a field to the state of the first _StorageInfo.
std::string with_transforms(const std::string& metadata) {
  const std::string key("X\x0d\0\0\0relative_path", 18);
  const std::string more("X\x15\0\0\0transform_descriptors](X\4\0\0\0zstde", 38);
  return replaced(metadata, key, more + key);
}

}  // namespace

TEST_CASE("what is written is read back") {
  const Sample sample;
  const Metadata read = parse_metadata(sample.metadata(), ".metadata");
  REQUIRE(read.tensors.size() == 1);
  CHECK(read.objects.empty());
  CHECK(read.tensors[0].name == "w");
  CHECK(read.tensors[0].shape == Shape{4, 2});
  REQUIRE(read.tensors[0].chunks.size() == 2);
  CHECK(read.tensors[0].chunks[1].begin == Shape{2, 0});
  CHECK(read.tensors[0].chunks[1].shape == Shape{2, 2});
  CHECK_FALSE(error_of_opening(sample.metadata(), sample.data()));
}

TEST_CASE("as many chunks as a thousand ranks write are read") {
  constexpr i64 kChunks = 240'000;
  const FilePlan plan = Sample().plan();
  const auto placed = [&plan](size_t) {
    PlacedTensor tensor{"w", Dtype::kU8, {kChunks, 2}, {}};
    for (i64 chunk = 0; chunk < kChunks; ++chunk)
      tensor.parts.push_back({{chunk, 0}, {1, 2}, 0, plan.places[0].offset});
    return tensor;
  };
  std::string text;
  write_metadata({plan.files, 1, placed}, [&text](std::string_view piece) { text += piece; });
  const Metadata read = parse_metadata(text, ".metadata");
  REQUIRE(read.tensors.size() == 1);
  CHECK(std::ssize(read.tensors[0].chunks) == kChunks);
}

TEST_CASE("every contradiction is an error that names it") {
  const Sample good;
  struct Case {
    std::string message;
    ErrorCode code;
    std::function<std::optional<Error>()> open;
  };
  const auto opened = [](const Sample& sample) {
    return error_of_opening(sample.metadata(), sample.data());
  };
  const std::vector<Case> cases{
      {"the chunks do not cover the tensor", ErrorCode::kMalformed,
       [&] {
         Sample sample;
         sample.recorded = 1;
         return opened(sample);
       }},
      {"the chunks do not cover the tensor", ErrorCode::kMalformed,
       [&] {
         Sample sample;
         sample.begins[1] = {1, 0};  // overlaps the first chunk
         return opened(sample);
       }},
      {"a chunk leaves its tensor", ErrorCode::kMalformed,
       [&] {
         Sample sample;
         sample.begins[1] = {3, 0};
         return opened(sample);
       }},
      {"a data file lies outside of the checkpoint's folder or is hidden", ErrorCode::kMalformed,
       [&] {
         Sample sample;
         sample.file = "../__0_0.distcp";
         return opened(sample);
       }},
      {"a data file lies outside of the checkpoint's folder or is hidden", ErrorCode::kMalformed,
       [&] {
         Sample sample;
         sample.file = "/etc/hosts";
         return opened(sample);
       }},
      {"the data was transformed when it was saved, such as compressed", ErrorCode::kUnsupported,
       [&] { return error_of_opening(with_transforms(good.metadata()), good.data()); }},
      {"a chunk lies outside of its file", ErrorCode::kMalformed,
       [&] {
         const std::string data = good.data();
         return error_of_opening(good.metadata(), data.substr(0, data.size() - 1));
       }},
      {"the pickle is not a checkpoint's", ErrorCode::kMalformed,
       [&] { return error_of_opening(std::string("\x80\x02N.", 4), good.data()); }},
      {"the dtype is not read", ErrorCode::kUnsupported,
       [&] {
         return error_of_opening(replaced(good.metadata(), "torch\nuint8\n", "torch\nqint8\n"),
                                 good.data());
       }},
      {"the folder has .distcp files, but no .metadata", ErrorCode::kFileMissing,
       [&] {
         const TempFolder folder;
         folder.write("__0_0.distcp", good.data());
         return error_of([&] { open_checkpoint(folder.path()); });
       }},
      {"a chunk has another dtype", ErrorCode::kMalformed,
       [&] {
         return error_of_opening(replaced(good.metadata(), "torch\nuint8\n", "torch\nint8\n"),
                                 good.data());
       }},
      {"a chunk is no ChunkStorageMetadata", ErrorCode::kMalformed,
       [&] {
         return error_of_opening(
             replaced(good.metadata(), "\nChunkStorageMetadata\n", "\nChunkStorageMetadatb\n"),
             good.data());
       }},
      {"a tensor has no properties", ErrorCode::kMalformed,
       [&] {
         return error_of_opening(
             replaced(good.metadata(), "\n_MEM_FORMAT_ENCODING\n", "\n_MEM_FORMAT_ENCODINH\n"),
             good.data());
       }},
  };
  for (const Case& test : cases) {
    CAPTURE(test.message);
    const auto error = test.open();
    REQUIRE(error);
    CHECK(error->message() == test.message);
    CHECK(error->code() == test.code);
  }
}

TEST_CASE("a checkpoint that PyTorch wrote is read, and its objects are named") {
  const std::string folder = SHARDTOOL_SOURCE_DIR "/tests/format/dcp/torch";
  const Checkpoint opened = open_checkpoint(folder);
  REQUIRE(opened.chunked.size() == 3);
  CHECK(opened.chunked[0].name == "model.columns");
  CHECK(opened.chunked[0].shape == Shape{2, 5});
  CHECK(opened.chunked[0].stored.size() == 2);
  CHECK(opened.chunked[2].shape.empty());
  REQUIRE(opened.warnings.size() == 1);
  CHECK(opened.warnings[0].message == "1 entry of the checkpoint is no tensor and left out: step");
  REQUIRE(opened.others.size() == 1);
  CHECK(opened.others[0].name == "step");
  const Checkpoint below = open_checkpoint(folder + "#model");
  REQUIRE(below.chunked.size() == 3);
  CHECK(below.chunked[0].name == "columns");
  CHECK(below.others.empty());
  const auto none = error_of([&] { open_checkpoint(folder + "#optim"); });
  REQUIRE(none);
  CHECK(none->code() == ErrorCode::kFileMissing);
}

TEST_CASE("a survey reports each problem and goes on") {
  const auto problems_of = [](const Sample& sample, const std::string& data, size_t tensors) {
    const TempFolder folder;
    folder.write(".metadata", sample.metadata());
    if (!data.empty()) folder.write("__0_0.distcp", data);
    std::vector<ProblemKind> kinds;
    const Checkpoint opened = survey_checkpoint(
        folder.path(), [&](const Problem& problem) { kinds.push_back(problem.kind); });
    CHECK(opened.chunked.size() == tensors);
    CHECK(opened.tensors.size() == 2 * tensors);
    return kinds;
  };
  using enum ProblemKind;
  const Sample good;
  const std::string data = good.data();
  CHECK(problems_of(good, data, 1).empty());
  CHECK(problems_of(good, "", 0) == std::vector{kFileMissing});
  CHECK(problems_of(good, data.substr(0, data.size() - 1), 0) == std::vector{kTruncated});
  CHECK(problems_of(good, std::string(data.size(), 'x'), 0) == std::vector{kTorchFile, kTorchFile});
  Sample gap = good;
  gap.recorded = 1;
  CHECK(problems_of(gap, gap.data(), 0) == std::vector{kChunksIncomplete});
}

TEST_CASE("chunks that are stored as safetensors are told from damage") {
  const Sample sample;
  const size_t size = sample.data().size();
  // The header may be longer than a chunk, whose bytes are counted without it.
  for (const size_t header : {size_t{2}, size - 8}) {
    const TempFolder folder;
    std::string data(size, 'x');
    for (size_t i = 0; i < 8; ++i) data[i] = static_cast<char>(header >> 8 * i);
    data[8] = '{';
    folder.write(".metadata", sample.metadata());
    folder.write("__0_0.distcp", data);
    const auto error = error_of([&] { open_checkpoint(folder.path()); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kUnsupported);
    CHECK(error->message() == "the chunks are stored as safetensors, not by torch.save");
  }
}

TEST_CASE("chunks that overlap without being replicas are a warning") {
  const auto warnings_of = [](const Sample& sample) {
    const TempFolder folder;
    folder.write(".metadata", sample.metadata());
    folder.write("__0_0.distcp", sample.data());
    return open_checkpoint(folder.path()).warnings;
  };
  Sample sample;
  CHECK(warnings_of(sample).empty());
  sample.parts[1].shape = {3, 2};
  sample.begins[1] = {1, 0};
  const auto warnings = warnings_of(sample);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].oddity == Oddity::kOverlap);
}

}  // namespace shardtool::format::dcp

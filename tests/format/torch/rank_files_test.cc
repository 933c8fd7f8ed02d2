#include "lib/format/torch/rank_files.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "lib/format/checkpoint.h"
#include "tests/format/torch/rank_pickles.h"
#include "tests/support/generators.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
#include "tests/support/torch_files.h"

namespace shardtool::format::torch {
namespace {

namespace fs = std::filesystem;
using test::PickleWriter;
using test::TempFolder;
using Case = test::DistributedTensor;
using test::pickled_dtensor;
using test::pickled_integer;
using test::pickled_list;
using test::pickled_member;
using test::pickled_shards;
using test::PlacedCut;
using test::RowShard;

std::string file_name(i64 ranks, i64 rank) {
  return "model_world_size_" + std::to_string(ranks) + "_rank_" + std::to_string(rank) + ".pt";
}

/// Writes files of ranks with these shards of a tensor "w", whose values are their row-major
/// number.
void write_sharded_tensors(const TempFolder& folder, const Shape& whole,
                           const std::vector<std::vector<RowShard>>& ranks) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    std::vector<std::int32_t> values;
    for (const RowShard& shard : ranks[rank]) {
      for (i64 i = 0; i < shard.rows * whole[1]; ++i)
        values.push_back(static_cast<std::int32_t>(shard.begin * whole[1] + i));
    }
    std::string bytes(values.size() * sizeof(std::int32_t), '\0');
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    const std::string pickle =
        PickleWriter()
            .raw("}(" + pickled_member("w", pickled_shards(whole, ranks[rank])) + "u")
            .finished();
    folder.write(file_name(std::ssize(ranks), static_cast<i64>(rank)),
                 test::torch_zip(pickle, {{"0", bytes}}));
  }
}

std::vector<i64> chunk(const std::vector<i64>& all, i64 parts, i64 number) {
  const i64 size = std::ssize(all);
  const i64 step = (size + parts - 1) / parts;
  const i64 begin = std::min(size, step * number);
  const i64 end = std::min(size, begin + step);
  return {all.begin() + begin, all.begin() + end};
}

/// Every part-th stretch, as _StridedShard is defined for even sizes.
std::vector<i64> strided_chunk(const std::vector<i64>& all, i64 parts, i64 number, i64 factor) {
  std::vector<i64> held;
  for (i64 stretch = 0; stretch < factor; ++stretch) {
    const auto one = chunk(chunk(all, factor, stretch), parts, number);
    held.insert(held.end(), one.begin(), one.end());
  }
  return held;
}

/// The global indices per axis that a rank holds, placement by placement from left to right.
std::vector<std::vector<i64>> held_by(const Case& c, const Shape& coordinate) {
  std::vector<std::vector<i64>> held;
  for (const i64 extent : c.whole) {
    auto& axis = held.emplace_back(static_cast<size_t>(extent));
    std::iota(axis.begin(), axis.end(), 0);
  }
  for (size_t i = 0; i < c.cuts.size(); ++i) {
    const PlacedCut& cut = c.cuts[i];
    if (cut.axis < 0) continue;
    auto& axis = held[static_cast<size_t>(cut.axis)];
    axis = cut.split_factor == 0 ? chunk(axis, c.sizes[i], coordinate[i])
                                 : strided_chunk(axis, c.sizes[i], coordinate[i], cut.split_factor);
  }
  return held;
}

/// The value of an element is its row-major number.
std::string numbered_part(const Case& c, const std::vector<std::vector<i64>>& held) {
  std::vector<std::int32_t> values = {0};
  for (size_t axis = 0; axis < held.size(); ++axis) {
    std::vector<std::int32_t> next;
    for (const std::int32_t value : values) {
      for (const i64 index : held[axis])
        next.push_back(static_cast<std::int32_t>(value * c.whole[axis] + index));
    }
    values = std::move(next);
  }
  std::string bytes(values.size() * sizeof(std::int32_t), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Shape coordinate_of(i64 rank, const Shape& sizes) {
  Shape coordinate(sizes.size());
  for (size_t axis = sizes.size(); axis-- > 0; rank /= sizes[axis]) {
    coordinate[axis] = rank % sizes[axis];
  }
  return coordinate;
}

void write_rank_files(const TempFolder& folder, const Case& c) {
  const i64 ranks = element_count(c.sizes).value();
  for (i64 rank = 0; rank < ranks; ++rank) {
    const Shape coordinate = coordinate_of(rank, c.sizes);
    const auto held = held_by(c, coordinate);
    Shape local;
    for (const auto& axis : held) local.push_back(std::ssize(axis));
    const std::string pickle =
        PickleWriter()
            .raw("}(" + pickled_member("w", pickled_dtensor(c, coordinate, local)) + "u")
            .finished();
    folder.write(
        file_name(ranks, rank),
        test::torch_zip(pickle, {{"0", numbered_part(c, held)},
                                 {"1", std::string(4 * static_cast<size_t>(ranks), 'x')}}));
  }
}

/// Elements of a chunked tensor of 4 bytes each, from all its parts; 0 where none is.
template <class Number>
std::vector<Number> gathered(const Checkpoint& checkpoint, const ChunkedTensor& tensor) {
  std::vector<Number> whole(static_cast<size_t>(element_count(tensor.shape).value()));
  for (const size_t t : tensor.stored) {
    const StoredTensor& part = checkpoint.tensors[t];
    std::vector<Number> values(static_cast<size_t>(element_count(part.shape).value()));
    REQUIRE(part.bytes == std::ssize(values) * i64{sizeof(Number)});
    const auto file = store::open_read(checkpoint.files[static_cast<size_t>(part.file)].path);
    store::read_exact(file, std::as_writable_bytes(std::span(values)), part.offset);
    for (size_t i = 0; i < values.size(); ++i) {
      const Shape local = coordinate_of(static_cast<i64>(i), part.shape);
      i64 at = 0;
      for (size_t axis = 0; axis < local.size(); ++axis)
        at = at * tensor.shape[axis] + part.part->begin[axis] + local[axis];
      whole[static_cast<size_t>(at)] = values[i];
    }
  }
  return whole;
}

Case random_case() {
  Case c;
  for (i64 axes = *gen::between(1, 3); axes > 0; --axes) c.sizes.push_back(*gen::between(1, 3));
  const i64 ranks = element_count(c.sizes).value();
  const bool is_even = *rc::gen::arbitrary<bool>();
  for (i64 axes = *gen::between(0, 3); axes > 0; --axes)
    c.whole.push_back(is_even ? ranks * *gen::between(1, 2) : *gen::between(0, 7));
  for (size_t i = 0; i < c.sizes.size(); ++i)
    c.cuts.push_back({*gen::between(-1, std::ssize(c.whole) - 1), 0});
  i64 later = 1;
  for (size_t i = c.cuts.size(); is_even && i-- > 0;) {
    if (c.cuts[i].axis != 0) continue;
    if (later > 1 && *rc::gen::arbitrary<bool>()) c.cuts[i].split_factor = later;
    later *= c.sizes[i];
  }
  c.form = static_cast<int>(*gen::between(0, 2));
  return c;
}

/// A tensor of 4 rows and 2 columns on 2 ranks.
const Case kRows{{4, 2}, {2}, {{0, 0}}};

TEST_CASE("the parts of a distributed tensor are where the mesh and the placements say") {
  CHECK(rc::check([] {
    const Case c = random_case();
    const TempFolder folder;
    write_rank_files(folder, c);
    const Checkpoint opened = open_checkpoint(folder.path());
    RC_ASSERT(opened.chunked.size() == 1);
    RC_ASSERT(opened.chunked[0].shape == c.whole);
    std::vector<std::int32_t> expected(static_cast<size_t>(element_count(c.whole).value()));
    std::iota(expected.begin(), expected.end(), 0);
    RC_ASSERT(gathered<std::int32_t>(opened, opened.chunked[0]) == expected);
    RC_ASSERT(opened.warnings.empty());
  }));
}

/// Reads the files of `engines/torch_fsdp.py fixtures`: numbers from 0 on, plus 100 per parameter.
TEST_CASE("rank files of three versions of PyTorch hold the model") {
  for (const char* const name : {"hsdp", "fsdp", "empty_parts", "fsdp_tp", "sharded_tensors"}) {
    CAPTURE(name);
    const Checkpoint opened = open_checkpoint(std::string(SHARDTOOL_TORCH_FIXTURES "/") + name);
    CHECK(opened.format == "torch files of FSDP ranks");
    REQUIRE(opened.chunked.size() == 4);
    const std::map<std::string, std::pair<Shape, float>> expected = {
        {"0.weight", {{7, 4}, 0.F}}, {"1.weight", {{5, 4}, 100.F}}, {"1.bias", {{5}, 200.F}}};
    for (const ChunkedTensor& tensor : opened.chunked) {
      CAPTURE(tensor.name);
      if (tensor.name == "steps") {
        CHECK(tensor.dtype == Dtype::kI64);
        continue;
      }
      const auto& [shape, first] = expected.at(tensor.name);
      CHECK(tensor.shape == shape);
      const auto values = gathered<float>(opened, tensor);
      for (size_t i = 0; i < values.size(); ++i) CHECK(values[i] == first + static_cast<float>(i));
    }
  }
}

TEST_CASE("a rank has any number of shards of a sharded tensor, each at the place that it names") {
  const TempFolder folder;
  write_sharded_tensors(folder, {6, 2}, {{{4, 1}, {0, 2}}, {}, {{5, 1}, {3, 1}, {2, 1}}});
  const Checkpoint opened = open_checkpoint(folder.path());
  REQUIRE(opened.chunked.size() == 1);
  CHECK(opened.chunked[0].shape == Shape{6, 2});
  CHECK(opened.chunked[0].stored.size() == 5);
  std::vector<std::int32_t> expected(12);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(gathered<std::int32_t>(opened, opened.chunked[0]) == expected);
  CHECK(opened.warnings.empty());
  for (const int rank : {0, 1}) {
    CAPTURE(rank);
    CHECK_ERROR(kUnsupported, open_checkpoint(folder.path() + "/" + file_name(3, rank)));
  }
}

TEST_CASE("a sharded tensor that no rank has a shard of is missed") {
  const TempFolder folder;
  write_sharded_tensors(folder, {6, 2}, {{}, {}});
  CHECK_ERROR(kMalformed, open_checkpoint(folder.path()));
  write_sharded_tensors(folder, {6, 2}, {{{0, 3}}, {{4, 2}}});
  CHECK_ERROR(kMalformed, open_checkpoint(folder.path()));
  write_sharded_tensors(folder, {6, 2}, {{{0, 3}}, {{4, 3}}});
  CHECK_ERROR(kMalformed, open_checkpoint(folder.path()));
}

TEST_CASE("files with the state of the trainer are named in one warning") {
  const Checkpoint opened = open_checkpoint(SHARDTOOL_TORCH_FIXTURES "/fsdp");
  REQUIRE(opened.warnings.size() == 1);
  CHECK(opened.warnings[0].oddity == Oddity::kOtherEntry);
  CHECK(opened.warnings[0].message.find("extra_state_world_size_2_rank_0.pt") != std::string::npos);
}

TEST_CASE("entries without a tensor that all ranks have are named in one warning") {
  const TempFolder folder;
  for (i64 rank = 0; rank < 3; ++rank) {
    const std::string own = rank == 2 ? pickled_member("last", "N") : "";
    const std::string tensor = pickled_dtensor({{6}, {3}, {{0, 0}}}, {rank}, {2});
    const std::string pickle = PickleWriter()
                                   .raw("}(" + pickled_member("w", tensor) +
                                        pickled_member("epoch", pickled_integer(7)) + own + "u")
                                   .finished();
    folder.write(file_name(3, rank), test::torch_zip(pickle, {{"0", std::string(8, 'x')}}));
  }
  const Checkpoint opened = open_checkpoint(folder.path());
  REQUIRE(opened.warnings.size() == 2);
  CHECK(opened.warnings[0].file == file_name(3, 0));
  CHECK(opened.warnings[0].message ==
        "one entry is no tensor and is left out: 'epoch' (an integer); 1 other file has the same");
  CHECK(opened.warnings[1].file == file_name(3, 2));
}

TEST_CASE("config and tokenizer files come from the folder huggingface") {
  const TempFolder folder;
  write_rank_files(folder, kRows);
  folder.write("fsdp_config.json", "{}");
  fs::create_directory(folder.path() + "/huggingface");
  folder.write("huggingface/config.json", "{}");
  folder.write("huggingface/tokenizer.json", "{}");
  const Checkpoint opened = open_checkpoint(folder.path());
  CHECK(opened.config_path == folder.path() + "/huggingface/config.json");
  CHECK(opened.other_files == std::vector<std::string>{"config.json", "tokenizer.json"});
  CHECK(opened.other_path("config.json") == opened.config_path);
}

TEST_CASE("names of rank files are exact") {
  CHECK(rank_file("model_world_size_12_rank_3.pt")->world_size == 12);
  CHECK(rank_file("model_world_size_12_rank_3.pt")->rank == 3);
  for (const char* const other :
       {"model_world_size_2_rank_2.pt", "model_world_size_02_rank_1.pt",
        "model_world_size_2_rank_1", "model_world_size_2_rank_-1.pt",
        "optim_world_size_2_rank_1.pt", "model_world_size__rank_1.pt",
        "model_world_size_100000_rank_1.pt", "model_world_size_2_rank_1.pt.tmp"}) {
    CAPTURE(other);
    CHECK_FALSE(rank_file(other));
  }
}

TEST_CASE("a missing rank and two launches in one folder are refused") {
  const TempFolder folder;
  write_rank_files(folder, kRows);
  folder.write(file_name(3, 0), "");
  CHECK_ERROR(kUnsupported, open_checkpoint(folder.path()));
  fs::remove(folder.path() + "/" + file_name(3, 0));
  CHECK_FALSE(testing::error_of([&] { return open_checkpoint(folder.path()); }));
  fs::remove(folder.path() + "/" + file_name(2, 1));
  CHECK_ERROR(kFileMissing, open_checkpoint(folder.path()));
}

TEST_CASE("one rank's file alone is refused, unless it has the whole tensor") {
  const TempFolder folder;
  write_rank_files(folder, kRows);
  CHECK_ERROR(kUnsupported, open_checkpoint(folder.path() + "/" + file_name(2, 0)));
  write_rank_files(folder, {{4, 2}, {2}, {{-1, 0}}});
  CHECK_FALSE(
      testing::error_of([&] { return open_checkpoint(folder.path() + "/" + file_name(2, 0)); }));
}

/// Opens a folder of one rank file with this DTensor, whose storage has 2 x 2 numbers.
std::optional<Error> rank_refusal(const std::string& opcodes) {
  const TempFolder folder;
  const std::string pickle =
      PickleWriter().raw("}(" + pickled_member("w", opcodes) + "u").finished();
  folder.write(file_name(1, 0), test::torch_zip(pickle, {{"0", std::string(16, 'x')}}));
  return testing::error_of([&] { return open_checkpoint(folder.path()); });
}

TEST_CASE("a distributed tensor that contradicts itself is refused") {
  const auto code = [](const Case& c, const Shape& coordinate) {
    const auto error = rank_refusal(pickled_dtensor(c, coordinate, {2, 2}));
    REQUIRE(error.has_value());
    CHECK(error->tensor_name() == "w");
    return error->code();
  };
  CHECK(code({{5, 2}, {2}, {{0, 0}}}, {0}) == ErrorCode::kTensorInvalid);
  CHECK(code(kRows, {2}) == ErrorCode::kTensorInvalid);
  CHECK(code(kRows, {0, 0}) == ErrorCode::kTensorInvalid);
  CHECK(code({{4, 2}, {2}, {{2, 0}}}, {0}) == ErrorCode::kTensorInvalid);
  CHECK(code({{4, 2}, {2}, {}}, {0}) == ErrorCode::kTensorInvalid);
  CHECK(code({{4, 2}, {2}, {{0, 2}}}, {0}) == ErrorCode::kUnsupported);
  CHECK(code({{4, 2}, {0}, {{0, 0}}}, {0}) == ErrorCode::kTensorInvalid);
}

TEST_CASE("a sharded tensor that contradicts itself is refused") {
  const auto code = [](const std::string& opcodes) {
    const auto error = rank_refusal(opcodes);
    REQUIRE(error.has_value());
    CHECK(error->tensor_name() == "w");
    return error->code();
  };
  // More elements than the tensor has; another number of rows; no list of shards.
  CHECK(code(pickled_shards({1, 2}, {{0, 1}, {0, 1}})) == ErrorCode::kTensorInvalid);
  std::string opcodes = pickled_shards({4, 2}, {{0, 2}});
  const std::string sizes = pickled_member("shard_sizes", pickled_list({2, 2}));
  REQUIRE(opcodes.find(sizes) != std::string::npos);
  opcodes.replace(opcodes.find(sizes), sizes.size(),
                  pickled_member("shard_sizes", pickled_list({1, 2})));
  CHECK(code(opcodes) == ErrorCode::kTensorInvalid);
  opcodes = pickled_shards({4, 2}, {});
  REQUIRE(opcodes.find("](e") != std::string::npos);
  opcodes.replace(opcodes.find("](e"), 3, "N");
  CHECK(code(opcodes) == ErrorCode::kTensorInvalid);
}

}  // namespace
}  // namespace shardtool::format::torch

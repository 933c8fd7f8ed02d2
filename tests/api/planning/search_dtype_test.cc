#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/api/plan_search.h"
#include "tests/api/planning/searched.h"
#include "tests/api/planning/stored_model.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

/// Searches that may cast the weights.
namespace shardtool::api {
namespace {

using searched::blocks;
using searched::dense;
using searched::options_for;

const std::string& in_blocks() {
  static const StoredModel model(blocks());
  return model.path();
}

/// Returns the checkpoint that `merge` writes in a type. Asks once.
const std::string& written(const std::string& source, Dtype dtype) {
  static test::TempFolder folder;
  static std::map<std::pair<std::string, Dtype>, std::string> outputs;
  const auto [found, is_new] = outputs.try_emplace({source, dtype});
  if (!is_new) return found->second;
  MergeOptions options;
  options.sources = {source};
  options.write.dtype = dtype;
  options.write.dequantize = source == in_blocks();
  options.write.output = fmt::format("{}/{}", folder.path(), outputs.size());
  merge(options);
  return found->second = options.write.output;
}

bool is_same_row(const ServingRow& a, const ServingRow& b) {
  return a.layout == b.layout && a.kv_dtype == b.kv_dtype && a.concurrency == b.concurrency &&
         a.weights == b.weights && a.total == b.total && a.per_sequence == b.per_sequence &&
         a.fits == b.fits && a.offer.answer_us == b.offer.answer_us &&
         a.offer.tokens_per_s == b.offer.tokens_per_s;
}

std::vector<ServingRow> rows_with(const SearchReport& report, const SearchedModel& model) {
  std::vector<ServingRow> rows;
  std::ranges::copy_if(report.rows, std::back_inserter(rows),
                       [&](const ServingRow& row) { return row.model == model; });
  return rows;
}

/// True for a cast that changes nothing. Rotary frequencies of dense() are in F32, all else in
/// BF16.
bool is_stored_in(const std::string& source, Dtype dtype) {
  const bool is_mixed = source == in_blocks() || source == dense();
  return !is_mixed && dtype == Dtype::kBF16;
}

TEST_CASE("a search over types is one over the checkpoints that merge writes in them") {
  CHECK(rc::check("types", [] {
    const std::string source = *rc::gen::element(dense(), searched::dense_in_bf16(), in_blocks(),
                                                 searched::with_experts());
    SearchOptions options = options_for(source);
    options.objective = *rc::gen::element(plan::Objective::kThroughput, plan::Objective::kLatency);
    if (*gen::between(0, 1) == 1) options.plan.device.bytes = *gen::between(0, 600'000);
    SearchOptions of_files = options;
    for (const Dtype dtype : {Dtype::kBF16, Dtype::kF16, Dtype::kF32}) {
      if (*gen::between(0, 1) == 0) continue;
      options.dtypes.push_back(dtype);
      if (!is_stored_in(source, dtype)) of_files.plan.sources.push_back(written(source, dtype));
    }
    const SearchReport cast = search_layouts(options);
    const SearchReport files = search_layouts(of_files);
    RC_ASSERT(cast.warnings == files.warnings);
    RC_ASSERT(cast.rows.size() == files.rows.size());
    RC_ASSERT(cast.refused.size() == files.refused.size());
    RC_ASSERT(cast.value == files.value);
    RC_ASSERT(cast.bound == files.bound);
    for (const Dtype dtype : options.dtypes) {
      const auto rows = rows_with(cast, {source, dtype});
      if (is_stored_in(source, dtype)) {
        RC_ASSERT(rows.empty());
        continue;
      }
      const auto others = rows_with(files, {written(source, dtype)});
      RC_ASSERT(std::ranges::equal(rows, others, is_same_row));
    }
  }));
}

TEST_CASE("a smaller type needs less memory and fewer reads, and the search says which it took") {
  const auto searched_in = [](const std::string& source, Dtype dtype) {
    SearchOptions options = options_for(source);
    options.devices = {1};
    options.dtypes = {dtype};
    return search_layouts(options);
  };
  const std::string& wide = written(searched::dense_in_bf16(), Dtype::kF32);
  const SearchReport narrowed = searched_in(wide, Dtype::kBF16);
  REQUIRE(narrowed.rows.size() == 2);
  CHECK(2 * narrowed.rows[1].weights == narrowed.rows[0].weights);
  CHECK(narrowed.rows[*narrowed.optimum].model == SearchedModel{wide, Dtype::kBF16});
  const SearchReport widened = searched_in(searched::dense_in_bf16(), Dtype::kF32);
  CHECK(widened.rows[*widened.optimum].model == SearchedModel{searched::dense_in_bf16()});
}

/// Returns the output of `split` over tp.
std::string shards_of(const std::string& source, const test::TempFolder& folder, i64 tp,
                      std::optional<Dtype> dtype = {}) {
  SplitOptions options;
  options.source = source;
  options.mapping.mesh = mesh::Mesh({{"tp", tp}});
  options.write.dtype = dtype;
  options.write.output = folder.path() + "/shards";
  split(options);
  return options.write.output;
}

TEST_CASE("weights that are cast move as they are today, and nothing moves to today's layout") {
  static const StoredModel small_blocks(blocks(8));
  for (const std::string& source : {dense(), small_blocks.path()}) {
    CAPTURE(source);
    const test::TempFolder folder;
    SearchOptions options = options_for(source);
    options.dtypes = {Dtype::kF16};
    options.from = shards_of(source, folder, 2);
    const SearchReport report = search_layouts(options);
    CHECK(report.warnings.empty());
    const auto stored = rows_with(report, {source});
    const auto cast = rows_with(report, {source, Dtype::kF16});
    REQUIRE(stored.size() > 5);
    REQUIRE(cast.size() == stored.size());
    for (size_t i = 0; i < cast.size(); ++i) {
      REQUIRE(cast[i].layout == stored[i].layout);
      REQUIRE(cast[i].move);
      CHECK(cast[i].move->bytes_total == stored[i].move->bytes_total);
      CHECK(cast[i].move->bytes_moved == stored[i].move->bytes_moved);
      CHECK((cast[i].move->bytes_moved == 0) == (cast[i].layout == ServingLayout{1, 1, 1, 2}));
    }
  }
}

TEST_CASE("today's layout may have the weights in the type of a cast") {
  const test::TempFolder folder;
  SearchOptions options = options_for(dense());
  options.dtypes = {Dtype::kF16};
  options.from = shards_of(dense(), folder, 2, Dtype::kF16);
  const SearchReport report = search_layouts(options);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings.front().starts_with("all rows of '" + dense() + "' have no cost"));
  for (const ServingRow& row : report.rows) {
    REQUIRE(row.move.has_value() == row.model.dtype.has_value());
    if (row.move) CHECK(row.move->bytes_moved % 2 == 0);
    if (row.move) CHECK((row.move->bytes_moved == 0) == (row.layout == ServingLayout{1, 1, 1, 2}));
  }
}

TEST_CASE("a move is printed for other programs only if today's weights have the best one's type") {
  const std::string& wide = written(searched::dense_in_bf16(), Dtype::kF32);  // F16 is faster
  SearchOptions options = options_for(wide);
  options.dtypes = {Dtype::kF16};
  options.plan.emit = EmitFormat::kNcclM2n;
  const test::TempFolder of_stored, of_cast;
  options.from = shards_of(wide, of_stored, 2);
  CHECK_ERROR(kUsage, search_layouts(options));
  options.from = shards_of(wide, of_cast, 2, Dtype::kF16);
  CHECK(search_layouts(options).emitted.find("ncclFloat16") != std::string::npos);
  options.dtypes.clear();
  options.plan.sources = {wide, searched::dense_in_bf16()};
  options.from = of_stored.path() + "/shards";
  CHECK_ERROR(kUsage, search_layouts(options));
}

TEST_CASE("where only unpacked weights can be cut, the cost of the move is not known") {
  const test::TempFolder folder;
  SearchOptions options = options_for(in_blocks());
  options.dtypes = {Dtype::kF16};
  options.from = shards_of(in_blocks(), folder, 1);
  const SearchReport report = search_layouts(options);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings.front().starts_with("some rows of '" + in_blocks() + "' as F16 have no "));
  CHECK(report.warnings.front().find("falls inside a block of 128") != std::string::npos);
  for (const ServingRow& row : report.rows) CHECK(row.move.has_value() == (row.layout.tp == 1));
}

TEST_CASE("a model that cannot be cast is left out in that type with the reason") {
  static const StoredModel model(blocks(), "model.layers.0.mlp.up_proj.weight_scale_inv");
  SearchOptions options = options_for(model.path());
  options.dtypes = {Dtype::kBF16};
  const SearchReport report = search_layouts(options);
  CHECK_FALSE(report.rows.empty());
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings.front().find("is left out as BF16: ") != std::string::npos);
}

}  // namespace
}  // namespace shardtool::api

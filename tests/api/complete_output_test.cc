// An output that is there is complete only for the source whose values it has.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "lib/api/finish.h"
#include "lib/api/transform.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;

constexpr const char* kMapping = R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
  "axes": {"padded": {"mesh": "tp", "uneven": "pad", "pad_to": 8, "padding": "repeat_last"}},
  "rules": [{"match": "padded", "dims": ["padded", null]}, {"match": "rows", "strategy": "rowwise"},
            {"match": "columns", "strategy": "columnwise"},
            {"match": "norm", "strategy": "replicate"}]})";

/// A checkpoint of four tensors, and jobs whose outputs depend on each of its bytes.
class Source {
 public:
  Source() {
    test::Tensors tensors;
    tensors["rows"] = test::numbered_tensor("rows", Dtype::kBF16, {30, 17});
    tensors["columns"] = test::numbered_tensor("columns", Dtype::kBF16, {9, 30});
    tensors["padded"] = test::numbered_tensor("padded", Dtype::kBF16, {13, 3});
    tensors["norm"] = test::numbered_tensor("norm", Dtype::kF32, {7});
    for (const auto& [name, tensor] : tensors) bytes_ += std::ssize(tensor.bytes);
    test::write_checkpoint(path(), tensors);
    folder_.write("source/config.json", "{}");
    folder_.write("mapping.json", kMapping);
    mapping_.path = folder_ / "mapping.json";
  }

  std::string path() const { return folder_ / "source"; }
  WriteOptions to(const std::string& name, bool resume, bool force) const {
    WriteOptions write;
    write.output = folder_ / name;
    write.resume = resume;
    write.force = force;
    return write;
  }
  TransformReport split(WriteOptions write, std::vector<i64> ranks = {}) const {
    return api::split({path(), mapping_, std::move(ranks), std::move(write)});
  }
  /// Changes a byte of the values, or takes the change back.
  void change(i64 value) const {
    const std::string file = folder_ / "source/model.safetensors";
    test::flip_bits(file, static_cast<i64>(fs::file_size(file)) - bytes_ + value);
  }
  i64 bytes() const { return bytes_; }

  using Job = std::function<TransformReport(bool resume, bool force)>;
  std::vector<std::pair<std::string, Job>> jobs() const {
    const auto simple = [this](bool resume, bool force) { return split(to("out", resume, force)); };
    const auto some_ranks = [this](bool resume, bool force) {
      return split(to("out", resume, force), {0});
    };
    const auto cast = [this](bool resume, bool force) {
      WriteOptions write = to("out", resume, force);
      write.dtype = Dtype::kF16;
      return split(write);
    };
    const auto merged = [this](bool resume, bool force) {
      split(to("parts", false, true));
      return merge({{folder_ / "parts"}, true, to("out", resume, force)});
    };
    const auto resharded = [this](bool resume, bool force) {
      split(to("parts", false, true));
      MappingChoice mapping = mapping_;
      mapping.mesh = mesh::Mesh({{"tp", 3}});
      return reshard({{folder_ / "parts"}, mapping, {}, true, to("out", resume, force)});
    };
    const auto shared = [this](bool resume, bool force) {
      TransformReport report;
      for (const int number : {0, 1}) {
        WriteOptions write = to("out", resume, force);
        write.share = Share{number, 2};
        report = split(write);
      }
      return report;
    };
    return {{"split", simple}, {"ranks", some_ranks},  {"cast", cast},
            {"merge", merged}, {"reshard", resharded}, {"shares", shared}};
  }
  std::map<std::string, std::string> output() const {
    return test::folder_content(folder_ / "out");
  }
  /// Puts a weights file of nobody beside the output's own.
  void add_to_output(const std::string& name) const {
    fs::copy_file(path() + "/model.safetensors", fs::path(folder_ / "out") / name);
  }

 private:
  TempFolder folder_;
  MappingChoice mapping_;
  i64 bytes_ = 0;
};

}  // namespace

TEST_CASE("an output is not taken for that of a source with other values") {
  const Source source;
  std::minstd_rand random(7);
  std::uniform_int_distribution<i64> any(0, source.bytes() - 1);
  for (const auto& [name, job] : source.jobs()) {
    int changed = 0;
    for (int i = 0; i < 12; ++i) {
      CAPTURE(name);
      job(false, true);
      const auto before = source.output();
      CHECK(job(true, false).was_complete);
      const i64 value = any(random);
      CAPTURE(value);
      source.change(value);
      // A byte of another rank's is no other value, nor is one that the cast rounds away.
      const auto error = testing::error_of([&, &run = job] { run(true, false); });
      if (error) CHECK(error->code() == ErrorCode::kOutputExists);
      CHECK(source.output() == before);
      const TransformReport report = job(true, true);
      CHECK(report.was_complete == !error);
      const auto resumed = source.output();
      job(false, true);
      CHECK(source.output() == resumed);
      if (error) ++changed;
      CHECK((resumed != before) == error.has_value());
    }
    CHECK(changed >= 4);
  }
}

TEST_CASE("files beside the weights are compared where they are") {
  const Source source;
  source.split(source.to("out", false, false));
  const char* const before = std::getenv("TMPDIR");
  const std::string usual = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/nonexistent", 1);
  const auto error = testing::error_of([&] {
    CHECK(source.split(source.to("out", true, false)).was_complete);
    return 0;
  });
  usual.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", usual.c_str(), 1);
  CHECK_FALSE(error);
}

TEST_CASE("an output is not complete if a file beside the weights is another one") {
  const Source source;
  source.split(source.to("out", false, false));
  CHECK(source.split(source.to("out", true, false)).was_complete);
  std::ofstream(source.path() + "/config.json") << R"({"a": 1})";
  CHECK_ERROR(kOutputExists, source.split(source.to("out", true, false)));
  CHECK_FALSE(source.split(source.to("out", true, true)).was_complete);
  CHECK(source.output().at("config.json") == R"({"a": 1})");
}

TEST_CASE("a weights file beside a complete output is told, and refused where it is verified") {
  const std::string name = "model-rank-0-part-7.safetensors";
  const Source source;
  for (const auto& [verb, job] : source.jobs()) {
    CAPTURE(verb);
    job(false, true);
    const TransformReport before = job(true, false);
    CHECK(before.was_complete);
    source.add_to_output(name);
    const TransformReport after = job(true, false);
    CHECK(after.was_complete);
    REQUIRE(after.warnings.size() == before.warnings.size() + 1);
    CHECK(after.warnings.back() == name + ": not named by manifest.json and ignored");
    fs::remove(source.to("out", false, false).output + "/" + name);
  }
  const WriteOptions whole = source.to("out", false, true);
  source.split(whole);
  source.add_to_output(name);
  WriteOptions verified = source.to("out", true, false);
  verified.verify = true;
  FinishOptions finished;
  finished.output = whole.output;
  CHECK(finish(finished).warnings.size() == 1);
  finished.verify = true;
  for (const auto& error : {testing::error_of([&] { source.split(verified); }),
                            testing::error_of([&] { finish(finished); })}) {
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kDataMismatch);
    REQUIRE(error->place());
    CHECK(error->place()->file == whole.output + "/" + name);
  }
  fs::remove(whole.output + "/" + name);
  CHECK(source.split(verified).bytes_verified);
  CHECK(finish(finished).warnings.empty());
}

}  // namespace shardtool::api

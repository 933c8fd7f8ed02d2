// Faults at each request of whole runs from a store to a store.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/api/store/stored_model.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::PlayedAnswer;
using test::ReceivedRequest;
using Objects = std::map<std::string, std::string>;

constexpr const char* kCopiedAndSent =
    R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
    "rules": [{"match": "columns.*", "strategy": "columnwise"},
              {"match": "rows.*", "strategy": "rowwise"},
              {"match": "same.*", "strategy": "replicate"}]})";

/// Padding that repeats elements: the output is made on this machine first.
constexpr const char* kRepeatedRows =
    R"({"version": 1, "mesh": [{"axis": "tp", "size": 1}],
    "axes": {"long": {"mesh": "tp", "uneven": "pad", "pad_to": 4, "padding": "repeat_last"}},
    "rules": [{"match": "**", "dims": ["long", null]}]})";

/// A checkpoint and its shards on the store. Of each tensor of rows a rank has a part that the
/// store copies, and of each tensor of columns one that the run sends.
class FaultyStore {
 public:
  FaultyStore() {
    test::Tensors tensors;
    for (const std::string name : {"rows.a", "columns.a"}) {
      tensors[name] = test::numbered_tensor(name, Dtype::kF32, {2564, 1024});
    }
    tensors["same.a"] = test::numbered_tensor("same.a", Dtype::kF32, {1024});
    test::write_checkpoint(folder_ / "model", tensors, 1);
    folder_.write("model/generation_config.json", R"({"top_k": 20})");
    folder_.write("mapping.json", kCopiedAndSent);
    folder_.write("repeated.json", kRepeatedRows);
    constexpr i64 kAboveOnePart = (16 << 20) / 4096 + 1;
    test::write_checkpoint(folder_ / "long",
                           {{"a", test::numbered_tensor("a", Dtype::kF32, {kAboveOnePart, 1024})}});
    SplitOptions local = split_options();
    local.source = folder_ / "model";
    local.write.output = folder_ / "parts";
    api::split(local);
    store_.clear();
    store_.put_folder("model", folder_ / "model");
    store_.put_folder("parts", folder_ / "parts");
  }

  ServedStore& store() { return store_; }
  /// Begins a run: the inputs are there, and nothing else.
  void clear() { store_.clear_below("out"); }

  WriteOptions write_options(bool resumes) const {
    WriteOptions write;
    write.output = kOutput;
    write.resources.threads = 1;
    write.journal_bytes = 1;
    write.worth_keeping = 1;
    write.resume = resumes;
    return write;
  }
  SplitOptions split_options(bool resumes = false) const {
    SplitOptions options;
    options.source = "s3://bucket/model";
    options.mapping.path = folder_ / "mapping.json";
    options.write = write_options(resumes);
    return options;
  }
  void split(bool resumes) const { api::split(split_options(resumes)); }
  void merge(bool resumes) const {
    MergeOptions options;
    options.sources = {"s3://bucket/parts"};
    options.write = write_options(resumes);
    api::merge(options);
  }
  void split_staged(bool /*resumes*/) const {
    SplitOptions options = split_options();
    options.source = folder_ / "long";
    options.mapping.path = folder_ / "repeated.json";
    api::split(options);
  }
  void split_in_shares(bool /*resumes*/) const {
    for (const int number : {1, 0}) {
      SplitOptions options = split_options();
      options.write.share = Share{number, 2};
      api::split(options);
    }
  }

 private:
  ServedStore& store_ = ServedStore::instance();
  TempFolder folder_;
};

using Run = void (FaultyStore::*)(bool resumes) const;

/// Requests of a run that nothing disturbs, by their number from 1, and its output.
struct Undisturbed {
  std::vector<bool> copies = {false};  ///< the store copies a part
  Objects output;

  Undisturbed(FaultyStore& faulty, Run run) {
    faulty.clear();
    faulty.store().change([this](const ReceivedRequest& request, PlayedAnswer&) {
      copies.push_back(request.headers.contains("x-amz-copy-source"));
    });
    (faulty.*run)(false);
    output = faulty.store().below("out");
    CHECK(faulty.store().open_uploads() == 0);
  }
  int requests() const { return static_cast<int>(copies.size()) - 1; }
};

/// Answers instead of the store's to requests that follow each other.
struct Faults {
  std::string name;
  std::vector<PlayedAnswer> answers;
  bool acts = false;  ///< the store acts all the same: its answer is lost

  /// From request `first` on, and again `apart` requests later.
  void set(ServedStore& store, int first, int apart) const {
    const auto of = [this, first, apart](int number) -> std::optional<PlayedAnswer> {
      const auto at = static_cast<size_t>((number - first) % apart);
      if (number < first || at >= answers.size()) return std::nullopt;
      return answers[at];
    };
    if (!acts) return store.refuse(of);
    store.disturb([of](int number, PlayedAnswer& answer) {
      if (auto faulty = of(number)) answer = *std::move(faulty);
    });
  }
};

/// A request that fails is sent again next, so that one meets them all.
const Faults kFailures{"failures and a reset",
                       {{500, "", "<Error><Code>InternalError</Code></Error>"},
                        {503, "", "<Error><Code>SlowDown</Code></Error>"},
                        {0, "", ""}}};
const Faults kLostAnswer{"lost answer", {{0, "", ""}}, true};
const Faults kLateError{"late error", {{200, "", "<Error><Code>InternalError</Code></Error>"}}};

void check_output(FaultyStore& faulty, Run run, const Undisturbed& expected) {
  (faulty.*run)(false);
  CHECK((faulty.store().below("out") == expected.output));
  CHECK(faulty.store().open_uploads() == 0);
}

/// Has each request of a run meet the faults: every tenth one in a run, and another tenth in the
/// next.
void check_each_request(FaultyStore& faulty, Run run, const Undisturbed& expected,
                        const std::vector<Faults>& kinds) {
  constexpr int kApart = 10;
  for (const Faults& faults : kinds) {
    for (int first = 1; first <= kApart; ++first) {
      CAPTURE(faults.name);
      CAPTURE(first);
      faulty.clear();
      faults.set(faulty.store(), first, kApart);
      check_output(faulty, run, expected);
    }
  }
  MESSAGE("requests of a run: ", expected.requests());
}

/// Has each copy of a part fail behind its status.
void check_each_copy(FaultyStore& faulty, Run run, const Undisturbed& expected) {
  int copies = 0;
  for (int at = 1; at <= expected.requests(); ++at) {
    if (!expected.copies[static_cast<size_t>(at)]) continue;
    CAPTURE(at);
    faulty.clear();
    kLateError.set(faulty.store(), at, expected.requests());
    check_output(faulty, run, expected);
    ++copies;
  }
  CHECK(copies > 1);
}

}  // namespace

TEST_CASE("after faults at any request of a run the output is right and nothing is left over") {
  FaultyStore faulty;
  for (const Run run : {&FaultyStore::split, &FaultyStore::merge}) {
    const Undisturbed expected(faulty, run);
    check_each_request(faulty, run, expected, {kFailures, kLostAnswer});
    check_each_copy(faulty, run, expected);
  }
}

TEST_CASE(
    "after lost answers the output of shares, or of a folder, is right and leaves no upload") {
  FaultyStore faulty;
  for (const Run run : {&FaultyStore::split_in_shares, &FaultyStore::split_staged}) {
    check_each_request(faulty, run, Undisturbed(faulty, run), {kLostAnswer});
  }
}

TEST_CASE("a run that is refused from some request on is an error, and --resume completes it") {
  FaultyStore faulty;
  constexpr int kStep = 3;  // shared_output_test.cc takes every request
  for (const Run run : {&FaultyStore::split, &FaultyStore::merge}) {
    const Undisturbed expected(faulty, run);
    int errors = 0;
    for (int at = 1; at <= expected.requests(); at += kStep) {
      CAPTURE(at);
      faulty.clear();
      die_at(faulty.store(), at);
      const auto error = testing::error_of([&] { (faulty.*run)(false); });
      if (!error) continue;  // the last requests only tidy up
      ++errors;
      CHECK(error->code() == ErrorCode::kStoreRefused);
      faulty.store().disturb(nullptr);
      (faulty.*run)(true);
      Objects found = faulty.store().below("out");
      Objects wanted = expected.output;
      // Without the first copy the store counts as one that copies nothing: all bytes are hashed.
      const bool is_first_copy =
          std::ranges::find(expected.copies, true) == expected.copies.begin() + at;
      if (is_first_copy) {
        CHECK(found.erase("manifest.json") == 1);
        wanted.erase("manifest.json");
      }
      CHECK((found == wanted));
      CHECK(faulty.store().open_uploads() == 0);
    }
    CHECK(errors > expected.requests() / 2 / kStep);
  }
}

}  // namespace shardtool::api

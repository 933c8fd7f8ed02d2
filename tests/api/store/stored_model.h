#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/api/transform.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/served_store.h"
#include "tests/support/throws.h"

/// Checkpoints on an object store that tests play.
namespace shardtool::api {

using test::folder_content;
using test::ServedStore;
using test::TempFolder;

inline constexpr const char* kOutput = "s3://bucket/out";

inline constexpr const char* kThreeRanks =
    R"({"version": 1, "mesh": [{"axis": "tp", "size": 3}], "rules": [
    {"match": "rows.*", "strategy": {"type": "axiswise", "axis": 0}},
    {"match": "columns.*", "strategy": {"type": "axiswise", "axis": 1}},
    {"match": "same.*", "strategy": "replicate"}]})";

/// A checkpoint of two files on the store and on the disk, with its mapping beside it.
class ModelOnStore {
 public:
  ModelOnStore() {
    test::Tensors tensors;
    for (const std::string name : {"rows.a", "rows.b", "columns.a", "columns.b", "same.a"}) {
      tensors[name] = test::numbered_tensor(name, Dtype::kF32, {33, 41});
    }
    test::write_checkpoint(local(), tensors, 2);
    folder_.write("model/mapping.json", kThreeRanks);
    store_.clear();
    store_.put_folder("model", local());
  }

  std::string local() const { return folder_ / "model"; }
  std::string remote() const { return "s3://bucket/model"; }
  ServedStore& store() { return store_; }

  /// Splits from a place and returns the output's files.
  std::map<std::string, std::string> split(const std::string& from) {
    SplitOptions options;
    options.source = from;
    options.mapping.path = from + "/mapping.json";
    options.write.output = next_output();
    api::split(options);
    return folder_content(options.write.output);
  }
  /// Splits the local files to a prefix.
  void split_to(const std::string& prefix, bool force = false) const {
    SplitOptions options;
    options.source = local();
    options.mapping.path = local() + "/mapping.json";
    options.write.output = "s3://bucket/" + prefix;
    options.write.force = force;
    api::split(options);
  }
  std::map<std::string, std::string> merge(const std::string& from) {
    MergeOptions options;
    options.sources = {from};
    options.write.output = next_output();
    api::merge(options);
    return folder_content(options.write.output);
  }
  std::string next_output() {
    return last_output_ = folder_ / ("out" + std::to_string(++outputs_));
  }
  const std::string& last_output() const { return last_output_; }

 private:
  ServedStore& store_ = ServedStore::instance();
  TempFolder folder_;
  std::string last_output_;
  int outputs_ = 0;
};

/// Two ranks with several parts each: rows, columns, rows in another order, padding, and copies.
inline constexpr const char* kTwoRanks =
    R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
  "axes": {"zeroed": {"mesh": "tp", "uneven": "pad", "pad_to": 64},
           "mixed": {"mesh": "tp", "owners": [[3, 0], [2, 1]]}},
  "rules": [{"match": "zeroed.*", "dims": ["zeroed", null]},
            {"match": "mixed.*", "dims": ["mixed", null, null]},
            {"match": "columns.*", "strategy": "columnwise"},
            {"match": "paired.*", "strategy": {"type": "gate_up", "axis": 0}},
            {"match": "rows.*", "strategy": "rowwise"},
            {"match": "same.*", "strategy": "replicate"}]})";

class LargeModel {
 public:
  LargeModel() {
    test::Tensors tensors;
    for (const std::string name : {"rows.a", "columns.a", "paired.a", "columns.b", "rows.b"}) {
      tensors[name] = test::numbered_tensor(name, Dtype::kF32, {1200, 1024});
    }
    tensors["zeroed.a"] = test::numbered_tensor("zeroed.a", Dtype::kF32, {1201, 64});
    tensors["mixed.a"] = test::numbered_tensor("mixed.a", Dtype::kF32, {4, 300, 1024});
    tensors["same.a"] = test::numbered_tensor("same.a", Dtype::kF32, {1024});
    test::write_checkpoint(local(), tensors, 2);
    folder_.write("model/generation_config.json", R"({"top_k": 20})");
    folder_.write("mapping.json", kTwoRanks);
    store_.clear();
  }

  std::string local() const { return folder_ / "model"; }
  ServedStore& store() { return store_; }

  /// Options for an output with so much memory; one tensor is listed as finished at a time.
  SplitOptions options(const std::string& output, i64 memory = 64 << 20) const {
    SplitOptions options;
    options.source = local();
    options.mapping.path = folder_ / "mapping.json";
    options.write.output = output;
    options.write.resources.max_memory = options.write.resources.store_memory = memory;
    options.write.journal_bytes = 1;
    options.write.worth_keeping = 1;
    return options;
  }
  TransformReport split(const std::string& output, i64 memory, int threads = 0) const {
    SplitOptions chosen = options(output, memory);
    chosen.write.resources.threads = threads;
    chosen.write.worth_keeping = i64{1} << 40;
    return api::split(chosen);
  }
  std::map<std::string, std::string> expected() const {
    split(folder_ / "out", 64 << 20);
    auto content = folder_content(folder_ / "out");
    std::filesystem::remove_all(folder_ / "out");
    return content;
  }

 private:
  ServedStore& store_ = ServedStore::instance();
  TempFolder folder_;
};

/// Three models with the same names and shapes, and what their splits write.
class AlikeModels {
 public:
  explicit AlikeModels(const char* mapping) {
    for (const int model : {0, 1, 2}) {
      test::Tensors tensors;
      for (const std::string name : {"rows.a", "columns.a", "same.a"}) {
        tensors[name] = test::numbered_tensor(name, Dtype::kF32, {33, 41});
        if (model == 1) std::ranges::reverse(tensors[name].bytes);
        if (model == 2) std::ranges::rotate(tensors[name].bytes, tensors[name].bytes.begin() + 4);
      }
      test::write_checkpoint(folder_ / ("model" + std::to_string(model)), tensors, 1);
    }
    folder_.write("mapping.json", mapping);
    for (const int model : {0, 1, 2}) {
      store.clear();
      run(model)();
      expected.push_back(store.below("out"));
    }
  }

  /// Options for a run of one model on one thread.
  SplitOptions options(int model, bool force = false) const {
    SplitOptions options;
    options.source = folder_ / ("model" + std::to_string(model));
    options.mapping.path = folder_ / "mapping.json";
    options.write.output = kOutput;
    options.write.force = force;
    options.write.resources.threads = 1;
    return options;
  }
  std::function<void()> run(int model, bool force = false) const {
    return [options = options(model, force)] { split(options); };
  }
  /// Requests of a run that nothing disturbs.
  int requests() {
    store.clear();
    store.disturb([](int, test::PlayedAnswer&) {});
    run(0)();
    return store.requests();
  }
  /// Objects of the output, without hidden ones.
  std::map<std::string, std::string> left() {
    auto objects = store.below("out");
    std::erase_if(objects, [](const auto& object) { return object.first.starts_with('.'); });
    return objects;
  }
  bool can_read() const {
    const TempFolder folder;
    MergeOptions options;
    options.sources = {kOutput};
    options.write.output = folder / "whole";
    return !testing::error_of([&] { merge(options); });
  }
  /// True for the whole output of a model.
  bool is_published() { return std::ranges::find(expected, store.below("out")) != expected.end(); }

  ServedStore& store = ServedStore::instance();
  std::vector<std::map<std::string, std::string>> expected;

 private:
  TempFolder folder_;
};

/// Refuses every request from this number on: the store sees what it would of a killed process.
inline void die_at(ServedStore& store, int at) {
  store.disturb([at](int number, test::PlayedAnswer& answer) {
    if (number >= at) answer = {403, "", "<Error><Code>AccessDenied</Code></Error>"};
  });
}

}  // namespace shardtool::api

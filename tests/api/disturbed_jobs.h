#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "lib/api/transform.h"
#include "lib/exec/stream.h"
#include "lib/store/local/tree.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/faulty_syscalls.h"

/// Runs that tests disturb and repeat.
namespace shardtool::api {

inline constexpr const char* kDisturbedMapping =
    R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
  "axes": {"padded": {"mesh": "tp", "uneven": "pad", "pad_to": 8, "padding": "repeat_last"},
           "zeroed": {"mesh": "tp", "uneven": "pad", "pad_to": 64}},
  "rules": [{"match": "padded.*", "dims": ["padded", null]},
            {"match": "zeroed.*", "dims": ["zeroed", null]},
            {"match": "rows.*", "strategy": "rowwise"},
            {"match": "columns.*", "strategy": "columnwise"},
            {"match": "norm.*", "strategy": "replicate"}]})";

enum class Verb { kSplit, kMerge, kReshard };

/// A checkpoint of 22 tensors, large enough for direct I/O, some with several chunks, and the
/// expected output of each verb.
class Jobs {
 public:
  Jobs() {
    test::Tensors tensors;
    for (const std::string n : {"0", "1", "2", "3"}) {
      add(tensors, "rows." + n, Dtype::kBF16, {300, 256});
      add(tensors, "columns." + n, Dtype::kBF16, {100, 1024});
      add(tensors, "norm." + n, Dtype::kF32, {77});
      add(tensors, "padded." + n, Dtype::kBF16, {301, 128});
      add(tensors, "zeroed." + n, Dtype::kBF16, {301, 64});
    }
    add(tensors, "columns.large", Dtype::kBF16, {1500, 512});
    add(tensors, "rows.large", Dtype::kBF16, {1200, 512});
    test::write_checkpoint(folder / "whole", tensors, 2);
    folder.write("mapping.json", kDisturbedMapping);
    for (const Verb verb : {Verb::kSplit, Verb::kMerge, Verb::kReshard}) {
      WriteOptions undisturbed;
      undisturbed.output = folder / name(verb);
      run(verb, undisturbed);
      expected_[verb] = test::folder_content(undisturbed.output);
    }
  }

  TransformReport run(Verb verb, WriteOptions write) const {
    // Buffers of a size that only one or two of these tensors travel together.
    write.resources.max_memory = exec::kMinMemory;
    if (write.resources.threads == 0) write.resources.threads = 4;
    MappingChoice mapping;
    mapping.path = folder / "mapping.json";
    if (verb == Verb::kSplit) return split({folder / "whole", mapping, {}, write});
    if (verb == Verb::kMerge) return merge({{folder / "split"}, true, write});
    mapping.mesh = mesh::Mesh({{"tp", 4}});
    return reshard({{folder / "split"}, mapping, {}, true, write});
  }

  /// Options that write to `out`, commit every tensor and keep all finished work.
  WriteOptions careful(bool resume) const {
    WriteOptions write;
    write.output = folder / "out";
    write.journal_bytes = 1;
    write.worth_keeping = 1;
    write.resume = resume;
    return write;
  }
  bool is_published() const { return std::filesystem::exists(folder / "out"); }
  bool is_right(Verb verb) const {
    return test::folder_content(folder / "out") == expected_.at(verb);
  }
  bool has_leftovers() const {
    for (const std::string& name : store::names_in(folder.path())) {
      if (name.front() == '.') return true;
    }
    return false;
  }
  void clear() const {
    for (const std::string& name : store::names_in(folder.path())) {
      if (name.front() == '.' || name == "out") std::filesystem::remove_all(folder / name);
    }
  }

  test::TempFolder folder;

 private:
  static std::string name(Verb verb) {
    return verb == Verb::kSplit ? "split" : verb == Verb::kMerge ? "merged" : "resharded";
  }
  static void add(test::Tensors& tensors, const std::string& name, Dtype dtype,
                  const Shape& shape) {
    tensors[name] = test::distinct_tensor({name, dtype, shape});
  }

  std::map<Verb, std::map<std::string, std::string>> expected_;
};

/// Calls `dies`, which kills some work before its n-th system call, with 1, 1 + step and so on, and
/// `then` after each death, until the work has fewer calls. Nothing is synced meanwhile. Returns
/// the number of deaths.
inline int for_each_death(int step, const std::function<bool(int n)>& dies,
                          const std::function<void(int n)>& then) {
  for (int n = 1, deaths = 0;; n += step, ++deaths) {
    CAPTURE(n);
    const testing::FaultySyscalls no_syncs;
    if (!dies(n)) return deaths;
    then(n);
  }
}

}  // namespace shardtool::api

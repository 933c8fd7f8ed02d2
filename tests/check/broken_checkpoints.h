#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/api/check.h"
#include "tests/support/temp_folder.h"

namespace shardtool::test {

/// A way to break a rule: creates a checkpoint in the folder and returns the options to check it.
struct Broken {
  check::CheckRule rule;
  std::function<api::CheckOptions(const TempFolder&)> make;
};

// CheckRule families, each with a broken checkpoint per rule.
std::vector<Broken> broken_containers();
std::vector<Broken> broken_mappings();
std::vector<Broken> broken_shards();
std::vector<Broken> broken_models();
std::vector<Broken> broken_folders();
std::vector<Broken> broken_data();

/// A tensor of a written file.
struct WrittenTensor {
  std::string name;
  std::string dtype = "F32";
  std::vector<i64> shape = {};
};

/// Options for a checkpoint at one location.
api::CheckOptions options_for(std::string source);
/// Adds reading of all data.
api::CheckOptions reading(api::CheckOptions options);

/// Writes a file with these tensors, filled with the bytes 1, 2, 3, ...
std::string write_tensors(const TempFolder& folder, const std::string& name,
                          const std::vector<WrittenTensor>& tensors);
/// Copy the whole sample, or split it over tp=2 (or only these ranks of it). Return the folder.
std::string copy_sample(const TempFolder& folder);
std::string split_sample(const TempFolder& folder, const std::vector<i64>& ranks = {});

std::string read_file(const std::string& path);
/// Removes a tensor's digest from an output's manifest.
void drop_digest(const std::string& output, const std::string& tensor);
/// Has the manifest say that nobody has read a tensor.
void mark_unread(const std::string& output, const std::string& tensor);
/// Replaces a text in a file, which must contain it.
void edit(const std::string& path, const std::string& from, const std::string& to);

/// Number of a report's findings of a rule.
i64 count_of(const api::CheckReport& report, check::CheckRule rule);

}  // namespace shardtool::test

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/api/check.h"
#include "tests/support/temp_folder.h"

namespace shardtool::test {

/// A way to break a rule: makes a checkpoint in the folder and says how to check it.
struct Broken {
  check::Rule rule;
  std::function<api::CheckOptions(const TempFolder&)> make;
};

// The families, each with a checkpoint for every rule of it.
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

/// A checkpoint of one location.
api::CheckOptions options_for(std::string source);
/// The same with all data read.
api::CheckOptions reading(api::CheckOptions options);

/// A file with these tensors, whose bytes are 1, 2, 3, ... in turn.
std::string write_tensors(const TempFolder& folder, const std::string& name,
                          const std::vector<WrittenTensor>& tensors);
/// A copy of the sample, whole, and its split over tp=2 (or these ranks of it). Return the folder.
std::string copy_sample(const TempFolder& folder);
std::string split_sample(const TempFolder& folder, const std::vector<i64>& ranks = {});

std::string read_file(const std::string& path);
/// Takes the digest of a tensor out of an output's manifest.
void drop_digest(const std::string& output, const std::string& tensor);
/// Replaces one text by another in a file, which must have it.
void edit(const std::string& path, const std::string& from, const std::string& to);

}  // namespace shardtool::test

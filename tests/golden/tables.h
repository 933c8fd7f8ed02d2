#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/base/checked.h"

/// Values of single functions from the transformers library: functions.json, written by
/// functions.py.
namespace shardtool::golden {

struct ActivationTable {
  std::vector<double> x;
  std::map<std::string, std::vector<double>> y;  ///< by the activation's name
};
struct PairTable {
  std::vector<double> gate, up, out;
};
/// Rows of scores that pass through one router.
struct RouterTable {
  std::string kind;
  i64 experts = 0, top_k = 0;
  bool renormalise = false;
  double scale = 1;
  i64 groups = 0, top_groups = 0;
  double least_sum = 0;
  double jitter = 0;
  std::vector<double> correction;  ///< [experts] or empty
  std::vector<double> scores;      ///< [rows, experts]
  std::vector<i64> chosen;         ///< [rows, top_k], ascending
  std::vector<double> gates;       ///< [rows, experts]
};
struct RotationTable {
  std::string name;
  std::string config;  ///< as JSON
  i64 dims = 0;
  double theta = 0;
  i64 length = 0;
  std::vector<double> inverse;
  double attention_factor = 0, score_factor = 0;
};
/// Buckets of consecutive distances, beginning with `first`.
struct BucketTable {
  i64 buckets = 0, most_distance = 0, first = 0;
  bool two_sided = false;
  std::vector<i64> of;
};
struct FunctionTables {
  std::string transformers;
  ActivationTable activations;
  PairTable gpt_oss_glu;
  std::vector<RouterTable> routers;
  std::vector<RotationTable> rotations;
  std::vector<BucketTable> position_buckets, signed_buckets;
};

const FunctionTables& function_tables();

/// Returns the largest distance between two lists, each relative to the larger of 1 and the
/// expected value; infinity if the lengths differ.
double distance(const std::vector<double>& found, const std::vector<double>& expected);
/// Returns the same relative to the expected values, which must not be 0.
double relative_distance(const std::vector<double>& found, const std::vector<double>& expected);

}  // namespace shardtool::golden

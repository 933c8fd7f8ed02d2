#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/base/checked.h"

/// What the transformers library computes for single functions: functions.json, made by
/// functions.py.
namespace shardtool::golden {

struct ActivationTable {
  std::vector<double> x;
  std::map<std::string, std::vector<double>> y;  ///< by the activation's name
};
struct PairTable {
  std::vector<double> gate, up, out;
};
/// Many rows of scores through one router.
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
  std::string config;  ///< JSON
  i64 dims = 0;
  double theta = 0;
  i64 length = 0;
  std::vector<double> inverse;
  double attention_factor = 0, score_factor = 0;
};
/// Of the distances from `first` on, each one more.
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

/// The largest distance of two lists, each relative to 1 or to the expected value where that is
/// larger; infinity for lists of different lengths.
double distance(const std::vector<double>& found, const std::vector<double>& expected);
/// The same relative to the expected values, which are not 0.
double relative_distance(const std::vector<double>& found, const std::vector<double>& expected);

}  // namespace shardtool::golden

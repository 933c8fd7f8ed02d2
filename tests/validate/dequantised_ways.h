#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/cast/cast.h"
#include "lib/api/diff.h"
#include "lib/api/transform.h"
#include "lib/format/manifest/manifest.h"
#include "tests/support/checkpoint_files.h"
#include "tests/validate/quantised_model.h"

/// A quantised model, unpacked in several ways.
namespace shardtool::test {

/// Returns the values in another type, and adds what the cast counts.
Bytes rounded(const std::vector<double>& values, Dtype to, kernels::CastCounts* counts = nullptr);
std::string file_text(const std::string& path);
/// Returns a type to unpack to; nullopt: that of the config.
std::optional<Dtype> any_dtype(Random& random);

/// One model, and what the program makes of it in several ways.
class Ways {
 public:
  Ways(const QuantisedModel& model, i64 tp, std::optional<Dtype> dtype);

  std::string at(const std::string& name) const { return folder_ / name; }

  api::WriteOptions write(const std::string& to, bool dequantize) const;
  api::TransformReport merge(const std::string& from, const std::string& to, bool dequantize) const;
  /// Returns false if split refuses the cut.
  bool split(const std::string& from, const std::string& to, bool dequantize,
             const std::string& straddle = "error", const std::vector<i64>& ranks = {}) const;
  void reshard(const std::string& from, const std::string& to, bool dequantize) const;
  bool same(const std::string& a, const std::string& b, const std::string& prefix) const;
  bool same_shards(const std::string& a, const std::string& b) const;
  api::DiffReport diff(const std::string& a, const std::string& b) const;
  format::Manifest manifest(const std::string& output) const;

  /// Changes the first byte of the first shard of the first tensor whose name ends so. Returns its
  /// name.
  std::string change(const std::string& output, const std::string& end) const;

  /// Checks values and counts of a merged output against the reader.
  void check_values(const std::string& output, const api::TransformReport& report) const;

 private:
  const QuantisedModel& model_;
  i64 tp_;
  std::optional<Dtype> dtype_;
  TempFolder folder_;
};

}  // namespace shardtool::test

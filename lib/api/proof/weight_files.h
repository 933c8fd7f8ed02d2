#pragma once

#include <memory>
#include <vector>

#include "lib/api/transfer/logical_checkpoint.h"
#include "lib/engine/weights/weight_source.h"
#include "lib/exec/data_file.h"

namespace shardtool::api {

/// The tensors of a checkpoint as an engine reads them: of a whole one by device 0, of shards by
/// the devices that hold them. Integers that a device counts from its own first are those of the
/// whole tensor. The checkpoint must outlive it. Throws what opening files throws.
class WeightFiles final : public engine::WeightSource {
 public:
  explicit WeightFiles(const LogicalCheckpoint& checkpoint);
  void read(const engine::StoredRows& rows, std::span<std::byte> bytes) const override;
  const std::byte* read_pages(const engine::StoredRows& rows, i64 bytes,
                              std::byte* buffer) const override;

 private:
  /// Where rows are.
  struct Place {
    const exec::SourceFile* file = nullptr;
    i64 offset = 0;
  };
  Place place_of(const engine::StoredRows& rows) const;

  const LogicalCheckpoint& checkpoint_;
  std::vector<exec::SourceFile> files_;
};

/// The tensors of shards as if they were merged: device 0 has everything. Of elements that several
/// devices hold, the first one's are read.
class MergedFiles final : public engine::WeightSource {
 public:
  /// Throws kCoverage when the parts do not make up a tensor.
  explicit MergedFiles(const LogicalCheckpoint& shards);
  void read(const engine::StoredRows& rows, std::span<std::byte> bytes) const override;

 private:
  void read_values(const LogicalTensor& tensor, const engine::StoredRows& rows,
                   std::span<std::byte> bytes) const;

  const LogicalCheckpoint& shards_;
  std::vector<exec::SourceFile> files_;
};

}  // namespace shardtool::api

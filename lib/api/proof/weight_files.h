#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/api/proof/kept_rows.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/engine/weights/weight_source.h"
#include "lib/exec/files/data_file.h"
#include "lib/layout/layout.h"

namespace shardtool::api {

/// Tensors of a checkpoint for an engine to read: a whole one by device 0, shards by the devices
/// that hold them. Shifted integers are returned as those of the whole tensor. The checkpoint must
/// outlive it. Throws the errors of opening files.
class WeightFiles final : public engine::WeightSource {
 public:
  explicit WeightFiles(const LogicalCheckpoint& checkpoint);
  void read(const engine::StoredRows& rows, std::span<std::byte> bytes) const override;
  const std::byte* read_pages(const engine::StoredRows& rows, i64 bytes,
                              std::byte* buffer) const override;

 private:
  /// File position of rows.
  struct Place {
    const exec::SourceFile* file = nullptr;
    i64 offset = 0;
  };
  Place place_of(const engine::StoredRows& rows) const;
  void read_stored(const engine::StoredRows& rows, std::span<std::byte> bytes) const;

  const LogicalCheckpoint& checkpoint_;
  std::vector<exec::SourceFile> files_;
};

/// Tensors of shards as if they were merged: device 0 has everything. For replicated elements the
/// first holder's copy is read.
class MergedFiles final : public engine::WeightSource {
 public:
  /// Throws kCoverage if the parts do not cover a tensor.
  explicit MergedFiles(const LogicalCheckpoint& shards);
  void read(const engine::StoredRows& rows, std::span<std::byte> bytes) const override;

 private:
  const LogicalCheckpoint& shards_;
  std::vector<exec::SourceFile> files_;
};

/// Shards as devices compute with them: where a device computes with more of a tensor than it
/// stores, or with its rows in another order, its part is joined from its own shard and those of
/// the nearest devices, by the number of mesh axes between them. Devices that differ only along
/// axes over which the shards are cut, and joined here, join the same shards: a small weight is
/// joined once for all of them, a large one as often as it is read.
class GatheredFiles final : public engine::WeightSource {
 public:
  using Layouts = std::vector<std::shared_ptr<const layout::Layout>>;

  /// By tensor: the layouts to compute with, and whether the tensor is joined or read as it is
  /// stored.
  GatheredFiles(const LogicalCheckpoint& shards, Layouts computed, std::vector<bool> is_gathered);
  /// The same open files for other layouts.
  GatheredFiles(const GatheredFiles& files, Layouts computed, std::vector<bool> is_gathered);
  void read(const engine::StoredRows& rows, std::span<std::byte> bytes) const override;
  const std::byte* read_pages(const engine::StoredRows& rows, i64 bytes,
                              std::byte* buffer) const override;
  std::vector<std::string> alike_along(size_t tensor) const override;

 private:
  exec::MoveSide senders(size_t tensor, i64 rank) const;
  void join(const engine::StoredRows& rows, std::span<std::byte> bytes) const;
  engine::StoredRows of_first_alike(engine::StoredRows rows) const;

  const LogicalCheckpoint& shards_;
  Layouts computed_;
  std::vector<bool> is_gathered_;
  std::vector<std::vector<size_t>> alike_;  ///< by tensor: alike_along as numbers of mesh axes
  mutable KeptRows kept_;
  std::shared_ptr<const WeightFiles> own_;
  std::shared_ptr<const std::vector<exec::SourceFile>> files_;
};

}  // namespace shardtool::api

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/exec/copy.h"
#include "tests/support/generators.h"
#include "tests/support/reference.h"
#include "tests/support/temp_folder.h"

/// A tensor in files, by the reference: every holder's bytes, one after the other, at odd offsets.
namespace shardtool::exec {

using reference::Bytes;

struct Case {
  std::string name = "tensor";
  Dtype dtype = Dtype::kU8;
  layout::Layout from;
  layout::Layout to;
};

/// The holders' bytes of a layout, placed element by element.
std::vector<Bytes> shards_of(const layout::Layout& layout, Dtype dtype, const Bytes& whole);

/// Slots for these shards in one file, each `gap` bytes after the one before, and the file's bytes.
struct Packed {
  std::vector<Slot> slots;
  Bytes bytes;
};
Packed pack(const std::vector<Bytes>& shards, int file, i64 gap);

void write_bytes(const std::string& path, const Bytes& bytes);
Bytes read_bytes(const std::string& path);

/// Runs a copy of one tensor between two packed files and gives what it reported and wrote.
struct Outcome {
  CopiedTensor copied;
  Bytes written;  ///< the destination file
  Packed wanted;  ///< what it must be
};
Outcome run_copy(const Case& test, i64 gap, Resources options, IoMode reading = IoMode::kAuto);

/// The digest of a tensor of this many elements.
std::uint64_t digest_of(i64 elements, Dtype dtype);
/// Every shard's bytes, its hash, the tensor's digest: all as the reference has them.
bool is_right(const Case& test, const Outcome& outcome, i64 gap);

}  // namespace shardtool::exec

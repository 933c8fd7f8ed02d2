#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/exec/copy.h"
#include "tests/support/generators.h"
#include "tests/support/reference.h"
#include "tests/support/temp_folder.h"

/// A tensor in files, built by the reference: the holders' bytes one after another at odd offsets.
namespace shardtool::exec {

using reference::Bytes;

struct Case {
  std::string name = "tensor";
  Dtype dtype = Dtype::kU8;
  layout::Layout from;
  layout::Layout to;
};

/// Bytes of a layout's holders, placed element by element.
std::vector<Bytes> shards_of(const layout::Layout& layout, Dtype dtype, const Bytes& whole);

/// Slots for these shards in one file, `gap` bytes apart, and the file's bytes.
struct Packed {
  std::vector<Slot> slots;
  Bytes bytes;
};
Packed pack(const std::vector<Bytes>& shards, int file, i64 gap);

void write_bytes(const std::string& path, const Bytes& bytes);
Bytes read_bytes(const std::string& path);

/// Copies one tensor between two packed files; the result has the report and the written bytes.
struct Outcome {
  CopiedTensor copied;
  Bytes written;  ///< the destination file
  Packed wanted;  ///< the expected destination file
};
Outcome run_copy(const Case& test, i64 gap, Resources options, IoMode reading = IoMode::kAuto);

/// Digest of a tensor with this many elements.
std::uint64_t digest_of(i64 elements, Dtype dtype);
/// True if every shard's bytes, its hash and the tensor's digest equal the reference's.
bool is_right(const Case& test, const Outcome& outcome, i64 gap);

}  // namespace shardtool::exec

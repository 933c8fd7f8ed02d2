#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/checkpoint_files.h"

/// Files of torch.save, written independently of the library.
namespace shardtool::test {

/// Appends the opcodes of pickle protocol 2. Strings of opcodes can be concatenated.
class PickleWriter {
 public:
  PickleWriter& raw(std::string_view opcodes);
  PickleWriter& text(std::string_view text);
  PickleWriter& integer(i64 number);
  PickleWriter& integers(const std::vector<i64>& tuple);
  PickleWriter& global(std::string_view module, std::string_view name);
  /// The pickle between PROTO and STOP.
  std::string finished() const { return "\x80\x02" + opcodes_ + "."; }
  const std::string& opcodes() const { return opcodes_; }

 private:
  std::string opcodes_;
};

struct ZipPart {
  std::string name;
  std::string content;
};

struct ZipForm {
  bool has_zip64_end = true;      ///< torch writes it always
  bool has_descriptors = true;    ///< sizes after the data and not in the local header
  bool has_wide_extents = false;  ///< sizes and offsets in zip64 extra fields, as above 4 GiB
  size_t alignment = 64;          ///< of the content
  bool has_checksums = false;     ///< CRC-32 of the content; 0 stands for "not computed"
};

/// A zip archive of stored records, as torch writes it.
std::string zip_archive(const std::vector<ZipPart>& parts, const ZipForm& form = {});

/// Opcodes of a tensor in a state dict, whose storage has this key. `numel` counts the elements of
/// the storage; `stride` and `offset` count elements, too.
struct TorchView {
  std::string key;
  i64 numel = 0;
  i64 offset = 0;
  std::vector<i64> stride;
};
std::string torch_tensor(const TensorSpec& spec, const TorchView& view, bool is_legacy = false);

/// Row-major strides of a shape, in elements.
std::vector<i64> row_major(const Shape& shape);

/// The records of an archive whose data.pkl is this pickle; storages are (key, bytes).
std::string torch_zip(const std::string& pickle,
                      const std::vector<std::pair<std::string, std::string>>& storages,
                      const ZipForm& form = {});

/// torch.save of a state dict, each tensor with a storage of its own, in the two forms.
std::string torch_zip(const Tensors& tensors);
std::string torch_legacy(const Tensors& tensors);

/// Writes folder/pytorch_model.bin, or several files and an index when `files` > 1.
void write_torch_checkpoint(const std::string& folder, const Tensors& tensors, int files = 1,
                            bool is_legacy = false);

}  // namespace shardtool::test

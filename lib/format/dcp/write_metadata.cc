#include <algorithm>

#include "lib/base/error.h"
#include "lib/format/dcp/files.h"
#include "lib/format/dcp/pickle_writer.h"
#include "lib/format/dcp/torch_names.h"
#include "lib/format/torch/torch_dtype.h"

namespace shardtool::format::dcp {
namespace {

/// Items that one SETITEMS takes, as in CPython's own pickles.
constexpr size_t kBatch = 1000;
constexpr size_t kPieceBytes = 1 << 20;

/// Extent of the blob whose data begins at `data`.
FramedData blob_of(const PlannedFile& file, i64 data) {
  const auto found =
      std::lower_bound(file.frames.begin(), file.frames.end(), data,
                       [](const FramedData& frame, i64 at) { return frame.data < at; });
  if (found != file.frames.end() && found->data == data) return *found;
  throw Error(ErrorCode::kInternal, "a chunk of a tensor lies outside of the blobs of its file");
}

/// Writes the object graph of `.metadata` (torch/distributed/checkpoint/metadata.py, PyTorch 2.13).
class MetadataPickle {
 public:
  MetadataPickle(const PlacedTensors& tensors, const safetensors::Sink& write)
      : tensors_(tensors), write_(write), pickle_(text_) {}

  void write() {
    pickle_.object(kMetadataModule, "Metadata");
    pickle_.empty_dict();
    pickle_.mark();
    pickle_.text("state_dict_metadata");
    dict([this](const PlacedTensor& tensor) {
      pickle_.text(tensor.name);
      tensor_metadata(tensor);
    });
    pickle_.text("planner_data");
    dict([this](const PlacedTensor& tensor) {
      pickle_.text(tensor.name);
      pickle_.text(tensor.name);
      pickle_.tuple1();
    });
    pickle_.text("storage_data");
    dict([this](const PlacedTensor& tensor) { storage_entries(tensor); });
    pickle_.text("storage_meta");
    pickle_.none();
    pickle_.text("version");
    pickle_.text("1.0.0");
    pickle_.set_items();
    pickle_.set_state();
    pickle_.stop();
    write_(text_);
  }

 private:
  /// Dict with the entries that `add` writes per tensor.
  template <class Add>
  void dict(const Add& add) {
    pickle_.empty_dict();
    for (size_t begin = 0; begin < tensors_.size; begin += kBatch) {
      pickle_.mark();
      for (size_t t = begin; t < std::min(begin + kBatch, tensors_.size); ++t) {
        add(tensors_.at(t));
        flush_if_long();
      }
      pickle_.set_items();
    }
  }

  void flush_if_long() {
    if (text_.size() < kPieceBytes) return;
    write_(text_);
    text_.clear();
  }

  void key(std::string_view name) { pickle_.shared_text(name); }

  void size(std::string_view name, const Shape& shape) {
    key(name);
    pickle_.global("torch", "Size");
    pickle_.integers(shape);
    pickle_.tuple1();
    pickle_.call();
  }

  /// Calls a global with one argument that `argument` writes.
  template <class Argument>
  void call_with(std::string_view module, std::string_view name, const Argument& argument) {
    pickle_.global(module, name);
    argument();
    pickle_.tuple1();
    pickle_.call();
  }

  void properties(Dtype dtype) {
    pickle_.object(kMetadataModule, "TensorProperties");
    pickle_.mark();
    pickle_.global("torch", torch::torch_names(dtype)->name);
    call_with("torch.serialization", "_get_layout", [&] { key("torch.strided"); });
    pickle_.boolean(false);  // requires_grad
    call_with(kMetadataModule, "_MEM_FORMAT_ENCODING", [&] { pickle_.integer(0); });  // contiguous
    pickle_.boolean(false);                                                           // pin_memory
    pickle_.tuple();
    pickle_.set_state();
  }

  void tensor_metadata(const PlacedTensor& tensor) {
    pickle_.object(kMetadataModule, "TensorStorageMetadata");
    pickle_.empty_dict();
    pickle_.mark();
    key("properties");
    properties(tensor.dtype);
    size("size", tensor.shape);
    key("chunks");
    pickle_.empty_list();
    pickle_.mark();
    for (const PlacedTensor::Part& part : tensor.parts) {
      pickle_.object(kMetadataModule, "ChunkStorageMetadata");
      pickle_.empty_dict();
      pickle_.mark();
      size("offsets", part.begin);
      size("sizes", part.shape);
      pickle_.set_items();
      pickle_.set_state();
      flush_if_long();
    }
    pickle_.append_items();
    pickle_.set_items();
    pickle_.set_state();
  }

  void storage_entries(const PlacedTensor& tensor) {
    for (size_t p = 0; p < tensor.parts.size(); ++p) {
      const PlacedTensor::Part& part = tensor.parts[p];
      pickle_.object(kMetadataModule, "MetadataIndex");
      pickle_.empty_dict();
      pickle_.mark();
      key("fqn");
      pickle_.text(tensor.name);
      size("offset", part.begin);
      key("index");
      pickle_.integer(static_cast<i64>(p));
      pickle_.set_items();
      pickle_.set_state();
      storage_info(part);
      flush_if_long();
    }
  }

  void storage_info(const PlacedTensor::Part& part) {
    const PlannedFile& file = tensors_.files[static_cast<size_t>(part.file)];
    const FramedData blob = blob_of(file, part.offset);
    pickle_.object(kFilesModule, "_StorageInfo");
    pickle_.empty_dict();
    pickle_.mark();
    key("relative_path");
    key(file.name);
    key("offset");
    pickle_.integer(blob.begin);
    key("length");
    pickle_.integer(blob.end - blob.begin);
    pickle_.set_items();
    pickle_.set_state();
  }

  const PlacedTensors& tensors_;
  const safetensors::Sink& write_;
  std::string text_;
  PickleWriter pickle_;
};

}  // namespace

void write_metadata(const PlacedTensors& tensors, const safetensors::Sink& write) {
  MetadataPickle(tensors, write).write();
}

}  // namespace shardtool::format::dcp

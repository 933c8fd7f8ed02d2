#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/name_map.h"
#include "lib/base/text.h"
#include "lib/format/dcp/metadata.h"
#include "lib/format/dcp/torch_names.h"
#include "lib/format/names.h"
#include "lib/format/torch/tensor_slot.h"
#include "lib/format/torch/torch_dtype.h"
#include "lib/format/torch/unpickle.h"

namespace shardtool::format::dcp {
namespace {

using torch::PickleValue;
using torch::ValueKind;

constexpr size_t kObject = static_cast<size_t>(-1);

class Parser {
 public:
  explicit Parser(const std::string& path) : path_(path) {}

  Metadata parse(const PickleValue& root) {
    if (!is_object(root, kMetadataModule, "Metadata"))
      throw malformed("the pickle is not a checkpoint's");
    const PickleValue entries = dict(field(root, "state_dict_metadata"), "state_dict_metadata");
    for (size_t i = 0; i < entries.entries(); ++i) {
      add_entry(std::string(text(entries.key(i))), entries.value(i));
    }
    const PickleValue storage = dict(field(root, "storage_data"), "storage_data");
    for (size_t i = 0; i < storage.entries(); ++i) {
      add_storage(storage.key(i), storage.value(i));
    }
    for (size_t t = 0; t < metadata_.tensors.size(); ++t) add_chunks(t);
    number_files();
    std::sort(metadata_.objects.begin(), metadata_.objects.end());
    const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
    std::sort(metadata_.tensors.begin(), metadata_.tensors.end(), by_name);
    return std::move(metadata_);
  }

 private:
  using Where = std::pair<size_t, Shape>;  // number of the tensor, and begin
  struct Storage {
    size_t file = 0;
    i64 offset = 0;
    i64 length = 0;
  };

  Error malformed(const std::string& message) const {
    return Error(ErrorCode::kMalformed, message)
        .at({path_, 0, 0, ""})
        .help("copy the checkpoint's folder again, or save it again");
  }
  Error unsupported(const std::string& message) const {
    return Error(ErrorCode::kUnsupported, message).at({path_, 0, 0, ""});
  }

  static bool is_object(const PickleValue& value, std::string_view module, std::string_view name) {
    return value.is(ValueKind::kObject) && value.callable().is_global(module, name);
  }

  /// Field of an object's state.
  PickleValue field(const PickleValue& object, std::string_view name) const {
    const auto state = object.is(ValueKind::kObject) ? object.state() : std::nullopt;
    if (state && state->is(ValueKind::kDict)) {
      if (const auto found = state->find(name)) return *found;
    }
    throw malformed(fmt::format("an object of the checkpoint has no field '{}'", name));
  }

  PickleValue dict(const PickleValue& value, std::string_view name) const {
    if (value.is(ValueKind::kDict)) return value;
    throw malformed(fmt::format("'{}' is no dict", name)).note("found", kind(value));
  }
  std::string_view text(const PickleValue& value) const {
    if (value.is(ValueKind::kText)) return value.text();
    throw malformed("a name is no text").note("found", kind(value));
  }
  i64 size(const PickleValue& value) const {
    if (value.is(ValueKind::kInteger) && value.integer() >= 0) return value.integer();
    throw malformed("a size is no integer from 0 on").note("found", kind(value));
  }
  static std::string kind(const PickleValue& value) { return std::string(to_string(value.kind())); }

  /// Numbers of a torch.Size.
  Shape sizes(const PickleValue& value) const {
    const bool is_size = is_object(value, "torch", "Size") && value.arguments().size() == 1;
    if (!is_size) throw malformed("a shape is no torch.Size").note("found", kind(value));
    const PickleValue numbers = value.arguments()[0];
    if (!numbers.is(ValueKind::kTuple) && !numbers.is(ValueKind::kList)) {
      throw malformed("a torch.Size has no numbers").note("found", kind(numbers));
    }
    if (numbers.size() > torch::kMostAxes) {
      throw malformed(fmt::format("a shape has more than {} axes", torch::kMostAxes));
    }
    Shape shape;
    for (size_t i = 0; i < numbers.size(); ++i) shape.push_back(size(numbers[i]));
    if (!element_count(shape)) throw malformed("a shape has more elements than 2^63");
    return shape;
  }

  void add_entry(std::string name, const PickleValue& value) {
    const bool is_object_entry = is_object(value, kMetadataModule, "BytesStorageMetadata");
    const size_t number = is_object_entry ? kObject : metadata_.tensors.size();
    if (!numbers_.try_emplace(name, number).second) {
      throw malformed("two entries of the checkpoint have one name")
          .tensor(quote_for_message(name));
    }
    if (is_object_entry) return metadata_.objects.push_back(std::move(name));
    if (!is_object(value, kMetadataModule, "TensorStorageMetadata")) {
      throw unsupported("an entry of the checkpoint is neither a tensor nor an object")
          .tensor(quote_for_message(name))
          .note("found", kind(value));
    }
    ChunkedEntry& tensor = metadata_.tensors.emplace_back();
    tensor.name = std::move(name);
    try {
      tensor.dtype = dtype_of(field(value, "properties"));
      tensor.shape = sizes(field(value, "size"));
      chunks_.push_back(field(value, "chunks"));
      if (!chunks_.back().is(ValueKind::kList)) throw malformed("'chunks' is no list");
    } catch (Error& error) {
      throw error.tensor(quote_for_message(tensor.name));
    }
  }

  void add_chunks(size_t number) {
    ChunkedEntry& tensor = metadata_.tensors[number];
    try {
      // Lists can be shared: each chunk must have a place of its own.
      all_chunks_ += chunks_[number].size();
      if (all_chunks_ > storage_.size()) throw malformed("a chunk is in no data file");
      for (size_t i = 0; i < chunks_[number].size(); ++i) {
        const PickleValue value = chunks_[number][i];
        if (!is_object(value, kMetadataModule, "ChunkStorageMetadata"))
          throw malformed("a chunk is no ChunkStorageMetadata").note("found", kind(value));
        Chunk chunk;
        chunk.begin = sizes(field(value, "offsets"));
        chunk.shape = sizes(field(value, "sizes"));
        check_inside(tensor, chunk);
        place(number, chunk);
        tensor.chunks.push_back(std::move(chunk));
      }
    } catch (Error& error) {
      throw error.tensor(quote_for_message(tensor.name));
    }
  }

  Dtype dtype_of(const PickleValue& properties) const {
    const auto state = is_object(properties, kMetadataModule, "TensorProperties")
                           ? properties.state()
                           : std::nullopt;
    constexpr size_t kMemoryFormat = 3, kLeast = 5;  // places in the state of TensorProperties
    if (!state || !state->is(ValueKind::kTuple) || state->size() < kLeast ||
        !is_object((*state)[kMemoryFormat], kMetadataModule, "_MEM_FORMAT_ENCODING")) {
      throw malformed("a tensor has no properties");
    }
    const PickleValue layout = (*state)[1];
    const bool is_strided = is_object(layout, "torch.serialization", "_get_layout") &&
                            layout.arguments().size() == 1 &&
                            layout.arguments()[0].is_text("torch.strided");
    if (!is_strided) throw unsupported("a tensor is sparse or has another layout than strided");
    const PickleValue dtype = (*state)[0];
    if (dtype.is(ValueKind::kGlobal) && dtype.module() == "torch") {
      if (const auto known = torch::dtype_of(dtype)) return *known;
      throw unsupported("the dtype is not read").note("found", quote_for_message(dtype.name()));
    }
    throw malformed("a dtype is no name of torch").note("found", kind(dtype));
  }

  void add_storage(const PickleValue& key, const PickleValue& value) {
    if (!is_object(key, kMetadataModule, "MetadataIndex") ||
        !is_object(value, kFilesModule, "_StorageInfo")) {
      throw malformed("an entry of 'storage_data' is no place of a chunk");
    }
    const std::string_view name = text(field(key, "fqn"));
    const auto number = numbers_.find(name);
    if (number == numbers_.end()) {
      throw malformed("data is stored of an entry that the checkpoint lacks")
          .tensor(quote_for_message(name));
    }
    if (number->second == kObject) return;
    const auto begin = key.state()->find("offset");
    if (!begin || begin->is(ValueKind::kNone)) {
      throw malformed("the data of a tensor has no place in it").tensor(quote_for_message(name));
    }
    const auto transforms = value.state() && value.state()->is(ValueKind::kDict)
                                ? value.state()->find("transform_descriptors")
                                : std::nullopt;
    if (transforms && !transforms->is(ValueKind::kNone)) {
      throw unsupported("the data was transformed when it was saved, such as compressed")
          .tensor(quote_for_message(name))
          .help("save the checkpoint without stream transforms");
    }
    const std::string_view file = text(field(value, "relative_path"));
    if (!is_inside_path(file)) {
      throw malformed("a data file lies outside of the checkpoint's folder or is hidden")
          .tensor(quote_for_message(name))
          .note("found", quote_for_message(file));
    }
    const size_t file_number = files_.try_emplace(std::string(file), files_.size()).first->second;
    storage_.insert_or_assign(
        {number->second, sizes(*begin)},
        Storage{file_number, size(field(value, "offset")), size(field(value, "length"))});
  }

  /// Gives a chunk its place.
  void place(size_t tensor, Chunk& chunk) const {
    const auto found = storage_.find({tensor, chunk.begin});
    if (found == storage_.end()) {
      throw malformed("a chunk is in no data file")
          .note("chunk", fmt::format("at {}", to_string(chunk.begin)));
    }
    chunk.file = found->second.file;
    chunk.offset = found->second.offset;
    chunk.length = found->second.length;
  }

  /// Replaces the numbers of first appearance by those in the order of names.
  void number_files() {
    std::vector<size_t> sorted(files_.size());
    for (const auto& [name, number] : files_) {
      sorted[number] = metadata_.files.size();
      metadata_.files.push_back(name);
    }
    for (ChunkedEntry& tensor : metadata_.tensors) {
      for (Chunk& chunk : tensor.chunks) chunk.file = sorted[chunk.file];
    }
  }

  void check_inside(const ChunkedEntry& tensor, const Chunk& chunk) const {
    const size_t rank = tensor.shape.size();
    bool is_inside = chunk.begin.size() == rank && chunk.shape.size() == rank;
    for (size_t axis = 0; is_inside && axis < rank; ++axis) {
      is_inside = chunk.shape[axis] <= tensor.shape[axis] &&
                  chunk.begin[axis] <= tensor.shape[axis] - chunk.shape[axis];
    }
    if (is_inside) return;
    throw malformed("a chunk leaves its tensor")
        .tensor(quote_for_message(tensor.name))
        .note("chunk", fmt::format("{} at {}", to_string(chunk.shape), to_string(chunk.begin)))
        .note("tensor", to_string(tensor.shape));
  }

  const std::string& path_;
  Metadata metadata_;
  NameMap<size_t> numbers_;          ///< of the tensors, or kObject
  std::vector<PickleValue> chunks_;  ///< list per tensor
  size_t all_chunks_ = 0;
  std::map<std::string, size_t> files_;
  std::map<Where, Storage> storage_;
};

}  // namespace

Metadata parse_metadata(std::string text, const std::string& path) {
  const torch::PickleTree tree = torch::unpickle(std::move(text), {path, "", 0});
  return Parser(path).parse(tree.root());
}

}  // namespace shardtool::format::dcp

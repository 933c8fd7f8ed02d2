#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "kernels/xxh3/xxh3.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/torch/archive.h"
#include "lib/format/torch/storage.h"
#include "lib/format/torch/unpickle.h"

// The legacy form: five pickles end to end (a magic number, a version, facts of the machine, the
// object, the keys of its storages), then per key the number of elements and the bytes. Source:
// PyTorch, torch/serialization.py, _legacy_save and _legacy_load.

namespace shardtool::format::torch {
namespace {

constexpr std::string_view kMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr i64 kVersion = 1001;
constexpr i64 kFirstRead = 64 << 10;
constexpr i64 kNumelBytes = 8;

/// Reads the pickles at the front of a file one after the other.
class PickleReader {
 public:
  PickleReader(const store::Reader& file, i64 size) : file_(file), size_(size) {}

  PickleTree next(const std::string& record) {
    const PickleOrigin origin{file_.path(), record, begin_};
    size_t scanned = 0;
    std::optional<size_t> length;
    while (!(length = pickle_length(text_, scanned, origin))) read_more(origin);
    std::string pickle = text_.substr(0, *length);
    text_.erase(0, *length);
    hash_.update(std::as_bytes(std::span(pickle)));
    begin_ += static_cast<i64>(*length);
    return unpickle(std::move(pickle), origin);
  }

  /// Offset of the first byte after the pickles so far.
  i64 offset() const { return begin_; }
  std::string hash() const { return hash_.hex(); }

 private:
  /// Doubles what is in memory of the pickle that begins at begin_.
  void read_more(const PickleOrigin& origin) {
    const auto have = static_cast<i64>(text_.size());
    const i64 more = std::min(std::max(have, kFirstRead), size_ - begin_ - have);
    if (more == 0 || have > kMaxPickleBytes) {
      throw Error(more == 0 ? ErrorCode::kMalformed : ErrorCode::kLimit,
                  more == 0 ? "the file ends inside a pickle" : "the pickle is too large")
          .at({origin.file, 0, 0, ""})
          .note("byte offset", std::to_string(begin_))
          .help("the file is truncated or is not one of torch.save: fetch it again");
    }
    text_.resize(static_cast<size_t>(have + more));
    store::read_exact(file_,
                      std::as_writable_bytes(std::span(text_).subspan(static_cast<size_t>(have))),
                      begin_ + have);
  }

  const store::Reader& file_;
  i64 size_;
  i64 begin_ = 0;
  std::string text_;  ///< bytes of the file from begin_ on
  kernels::Xxh3 hash_;
};

Error malformed(const store::Reader& file, const std::string& message) {
  return Error(ErrorCode::kMalformed, message).at({file.path(), 0, 0, ""});
}

void check_origin(const store::Reader& file, PickleReader& in) {
  const PickleTree magic = in.next("magic number");
  if (!magic.root().is(ValueKind::kBigInteger) || magic.root().text() != kMagic) {
    throw Error(ErrorCode::kUnsupported, "the pickle was not written by torch.save")
        .at({file.path(), 0, 0, ""})
        .note("found", describe(magic.root()))
        .note("expected", "the magic number of torch")
        .help("load it with the program that wrote it and save the tensors as safetensors");
  }
  const PickleTree version = in.next("version");
  if (!version.root().is(ValueKind::kInteger) || version.root().integer() != kVersion) {
    throw malformed(file, "the version of the legacy form is unknown")
        .note("expected", std::to_string(kVersion));
  }
  const PickleTree machine = in.next("facts of the machine");
  const auto is_little = machine.root().find("little_endian");
  if (is_little && is_little->is(ValueKind::kBool) && is_little->boolean()) return;
  throw Error(ErrorCode::kUnsupported, "the byte order of the file is not supported")
      .at({file.path(), 0, 0, ""})
      .note("expected", "little-endian data")
      .help("save the checkpoint again on a little-endian machine");
}

/// True for a persistent id of a class: the legacy form names classes of modules with their source.
bool is_class(PickleValue persistent) {
  const PickleValue id = persistent.persistent_id();
  return id.is(ValueKind::kTuple) && id.size() > 0 && id[0].is_text("module");
}

/// Finds the keys on the way from the saved object to a value of it.
class KeyPath {
 public:
  explicit KeyPath(const PickleTree& tree, size_t wanted) : wanted_(wanted), seen_(tree.size()) {
    find(tree.root(), false, 0);
  }
  /// The name of the tensor that has the value; empty if no key leads there.
  std::string name() const {
    return fmt::format("{}", fmt::join(keys_.rbegin(), keys_.rend(), "."));
  }

 private:
  static constexpr int kMaxDepth = 100;

  bool find(PickleValue value, bool is_inside_tensor, int depth) {
    if (value.id() == wanted_) return true;
    if (depth > kMaxDepth || seen_[value.id()]) return false;
    seen_[value.id()] = true;
    for (size_t i = 0; i < value.entries(); ++i) {
      if (find(value.value(i), is_inside_tensor, depth + 1)) return keep(value.key(i));
    }
    for (size_t i = 0; i < value.size(); ++i) {
      if (!find(value[i], is_inside_tensor, depth + 1)) continue;
      if (!is_inside_tensor) keys_.push_back(std::to_string(i));
      return true;
    }
    return value.is(ValueKind::kObject) && find(value.arguments(), true, depth + 1);
  }

  bool keep(PickleValue key) {
    if (key.is(ValueKind::kText)) keys_.emplace_back(key.text());
    if (key.is(ValueKind::kInteger)) keys_.push_back(std::to_string(key.integer()));
    return true;
  }

  size_t wanted_;
  std::vector<bool> seen_;
  std::vector<std::string> keys_;  ///< innermost first
};

StorageName legacy_storage(const store::Reader& file, const PickleTree& tree, size_t i) {
  try {
    return storage_name(tree.at(i));
  } catch (Error& error) {
    const std::string tensor = KeyPath(tree, i).name();
    if (!tensor.empty()) error.tensor(quote_for_message(tensor));
    error.at({file.path(), 0, 0, ""});
    throw;
  }
}

/// The storages that the object names. Two names of one storage must agree.
std::map<std::string, StorageName> named_storages(const store::Reader& file,
                                                  const PickleTree& tree) {
  std::map<std::string, StorageName> names;
  for (size_t i = 0; i < tree.size(); ++i) {
    if (!tree.at(i).is(ValueKind::kPersistent) || is_class(tree.at(i))) continue;
    StorageName name = legacy_storage(file, tree, i);
    const std::string key = name.key;
    const auto [first, is_new] = names.emplace(key, std::move(name));
    if (is_new || first->second.bytes == name.bytes) continue;
    throw malformed(file, "the pickle gives a storage two sizes")
        .note("storage", quote_for_message(key));
  }
  return names;
}

i64 read_numel(const store::Reader& file, i64 offset) {
  std::string text(kNumelBytes, '\0');
  store::read_exact(file, std::as_writable_bytes(std::span(text)), offset);
  std::uint64_t numel = 0;
  for (size_t i = kNumelBytes; i-- > 0;) numel = numel << 8 | static_cast<unsigned char>(text[i]);
  return static_cast<i64>(numel);
}

}  // namespace

Archive read_legacy_archive(const store::Reader& file, i64 size) {
  PickleReader in(file, size);
  check_origin(file, in);
  Archive archive;
  archive.tree = in.next("object");
  const PickleTree keys = in.next("keys of the storages");
  archive.header_bytes = in.offset();
  archive.header_xxh3 = in.hash();
  std::map<std::string, StorageName> names = named_storages(file, archive.tree);
  i64 offset = in.offset();
  for (size_t i = 0; i < keys.root().size(); ++i) {
    const PickleValue key = keys.root()[i];
    const auto name = key.is(ValueKind::kText) ? names.find(std::string(key.text())) : names.end();
    if (name == names.end()) {
      throw malformed(file, "the file holds a storage that its object does not name, or it twice");
    }
    const StorageName& storage = name->second;
    if (size - offset < kNumelBytes || size - offset - kNumelBytes < storage.bytes) {
      throw malformed(file, "the file ends inside a storage")
          .note("storage", quote_for_message(storage.key))
          .note("byte offset", std::to_string(offset))
          .help("the file is truncated: fetch it again");
    }
    if (const i64 numel = read_numel(file, offset); numel != storage.numel) {
      throw malformed(file, "a storage has another size than its object says")
          .note("storage", quote_for_message(storage.key))
          .note("found", fmt::format("{} elements", numel))
          .note("expected", fmt::format("{} elements", storage.numel));
    }
    archive.storages.emplace(storage.key, StoragePlace{offset + kNumelBytes, storage.bytes});
    offset += kNumelBytes + storage.bytes;
    names.erase(name);
  }
  if (names.empty() && offset == size) return archive;
  throw malformed(file, names.empty() ? "bytes follow the last storage of the file"
                                      : "the file lacks a storage that its object names")
      .note("byte offset", std::to_string(offset));
}

}  // namespace shardtool::format::torch

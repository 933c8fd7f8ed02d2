// A pickle of any protocol, and what is made of it as a saved object.
#include "lib/format/torch/state_dict.h"
#include "lib/format/torch/unpickle.h"
#include "tests/fuzz/property.h"
#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {
namespace {

namespace torch = format::torch;

/// Uses every part of a value once.
size_t parts_of(torch::PickleValue value) {
  size_t parts = value.size() + value.entries();
  for (size_t i = 0; i < value.size(); ++i) parts += value[i].id() & 1;
  for (size_t i = 0; i < value.entries(); ++i) {
    parts += value.key(i).id() + value.value(i).id();
  }
  switch (value.kind()) {
    case torch::ValueKind::kText:
    case torch::ValueKind::kBytes:
    case torch::ValueKind::kBigInteger:
      return parts + value.text().size();
    case torch::ValueKind::kGlobal:
      return parts + value.module().size() + value.name().size();
    case torch::ValueKind::kPersistent:
      return parts + value.persistent_id().id();
    case torch::ValueKind::kObject:
      return parts + value.callable().id() + value.arguments().id() +
             (value.state() ? value.state()->id() : 0);
    default:
      return parts;
  }
}

}  // namespace

void pickle(std::string_view input) {
  const torch::PickleOrigin origin{"f", "data.pkl", 0};
  auto tree = accepted([&] { return torch::unpickle(std::string(input), origin); });
  if (!tree) return;
  size_t scanned = 0;
  holds(torch::pickle_length(input, scanned, origin) == input.size(),
        "the length of the pickle is another");
  holds(tree->size() > 0 && tree->root().id() < tree->size(), "there is no root");
  constexpr size_t kMostParts = 1'000'000'000;
  size_t parts = 0;
  for (size_t i = 0; i < tree->size(); ++i) parts += parts_of(tree->at(i)) & 1;
  holds(parts < kMostParts, "there are too many parts");
  constexpr i64 kStorageBytes = 64;
  torch::Archive archive;
  archive.tree = *std::move(tree);
  archive.storages["0"] = {0, kStorageBytes};
  const auto content = accepted([&] { return torch::state_dict(archive, "f"); });
  if (!content) return;
  for (const torch::NamedSlot& tensor : content->tensors) {
    holds(tensor.slot.offset >= 0 && tensor.slot.bytes >= 0 &&
              tensor.slot.offset + tensor.slot.bytes <= kStorageBytes,
          "a tensor leaves its storage");
    holds(byte_size(tensor.slot.dtype, tensor.slot.shape) == tensor.slot.bytes,
          "a tensor has other bytes than its shape");
  }
}

}  // namespace shardtool::fuzz

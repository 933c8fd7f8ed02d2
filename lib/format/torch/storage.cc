#include "lib/format/torch/storage.h"

#include <fmt/format.h>

#include "lib/base/text.h"
#include "lib/format/torch/torch_dtype.h"

namespace shardtool::format::torch {
namespace {

Error malformed(const std::string& found) {
  return Error(ErrorCode::kMalformed, "the pickle names a storage in an unknown way")
      .note("found", found)
      .note("expected", "('storage', class, key, location, number of elements)");
}

Error unsupported(PickleValue storage_class) {
  const bool is_quantised = storage_class.name().starts_with("Q");
  return Error(ErrorCode::kUnsupported, is_quantised ? "quantised tensors of torch are not read"
                                                     : "the element type is not supported")
      .note("found", name_for_message(storage_class))
      .help("convert the tensor in torch and save the checkpoint again");
}

bool is_legacy_view(PickleValue id) {
  constexpr size_t kWithView = 6;
  return id.size() == kWithView && !id[kWithView - 1].is(ValueKind::kNone);
}

}  // namespace

std::string name_for_message(PickleValue global) {
  return quote_for_message(fmt::format("{}.{}", global.module(), global.name()));
}

std::string describe(PickleValue value) {
  if (value.is(ValueKind::kGlobal)) return name_for_message(value);
  if (!value.is(ValueKind::kObject)) return std::string(to_string(value.kind()));
  const PickleValue callable = value.callable();
  return callable.is(ValueKind::kGlobal) ? name_for_message(callable) : "an object";
}

StorageName storage_name(PickleValue persistent) {
  if (!persistent.is(ValueKind::kPersistent)) throw malformed(describe(persistent));
  const PickleValue id = persistent.persistent_id();
  if (!id.is(ValueKind::kTuple) || id.size() < 5 || id.size() > 6 || !id[0].is_text("storage") ||
      !id[1].is(ValueKind::kGlobal) || !id[2].is(ValueKind::kText) ||
      !id[4].is(ValueKind::kInteger) || id[4].integer() < 0) {
    throw malformed(describe(id));
  }
  if (is_legacy_view(id)) {
    throw Error(ErrorCode::kUnsupported,
                "views of storages in the form before torch 1.6 are not read")
        .help("load the file with torch and save it again with torch.save");
  }
  StorageName storage{std::string(id[2].text()), storage_dtype_of(id[1]), id[4].integer(), 0};
  const bool is_untyped = id[1].is_global("torch.storage", "UntypedStorage");
  if (!storage.dtype && !is_untyped) throw unsupported(id[1]);
  const auto bytes = storage.dtype ? byte_size(*storage.dtype, {storage.numel}) : storage.numel;
  if (!bytes) throw malformed(fmt::format("{} elements", storage.numel));
  storage.bytes = *bytes;
  return storage;
}

}  // namespace shardtool::format::torch

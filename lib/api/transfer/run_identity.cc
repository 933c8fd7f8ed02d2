#include "lib/api/transfer/run_identity.h"

#include <unordered_map>

#include "kernels/xxh3/xxh3.h"
#include "lib/api/dequantize/unpacked_tensor.h"

namespace shardtool::api {
namespace {

/// Hash of a sequence of texts and numbers; texts include their lengths.
class Fingerprint {
 public:
  void add(i64 number) { hash_.update(std::as_bytes(std::span(&number, 1))); }
  void add(std::string_view text) {
    add(std::ssize(text));
    hash_.update(std::as_bytes(std::span(text)));
  }
  void add(const index::AxisMap& map) {
    add(map.local_size());
    add(map.global_size());
    for (const index::Piece& piece : map.pieces()) {
      add(piece.local);
      add(piece.global);
      add(piece.size);
    }
    add(-1);
  }
  std::string hex() const { return hash_.hex(); }

 private:
  kernels::Xxh3 hash_;
};

/// Hashes each holder set once: many tensors share one.
class HolderHashes {
 public:
  const std::string& of(const std::shared_ptr<const index::HolderSet>& holders) {
    std::string& hash = hashes_[holders.get()];
    if (!hash.empty()) return hash;
    Fingerprint print;
    for (int h = 0; h < holders->size(); ++h) {
      for (const index::AxisMap& map : holders->region(h)) print.add(map);
      print.add(-2);
    }
    return hash = print.hex();
  }

 private:
  std::unordered_map<const index::HolderSet*, std::string> hashes_;
};

void add_slots(Fingerprint& print, const std::vector<exec::Slot>& slots) {
  for (const exec::Slot& slot : slots) {
    print.add(slot.file);
    print.add(slot.offset);
  }
}

void add_shifts(Fingerprint& print, const std::vector<index::ValueShift>& shifts) {
  for (const index::ValueShift& shift : shifts) {
    for (const i64 addend : shift.addends) print.add(addend);
    print.add(shift.halvings);
  }
  print.add(std::ssize(shifts));
}

/// Adds everything that decides which floats the stored tensors become: config.json says some of
/// it.
void add_unpacking(Fingerprint& print, const QuantisedWeight& weight) {
  print.add(weight.scheme);
  for (const StoredMember& member : weight.members) {
    print.add(member.tensor.spec.name);
    for (const StoredAxis& axis : member.axes) {
      print.add(static_cast<i64>(axis.of));
      print.add(axis.per);
    }
  }
  for (const auto& member :
       {weight.zeros, weight.groups, weight.shape, weight.divisor, weight.factor}) {
    print.add(member ? static_cast<i64>(*member) : -1);
  }
  for (const bool flag :
       {weight.is_turned, weight.is_packed, weight.is_packed_in_rows,
        weight.are_zeros_packed_in_rows, weight.are_inputs_rows, weight.scale_dtype.has_value()}) {
    print.add(static_cast<i64>(flag));
  }
  print.add(static_cast<i64>(weight.kind));
  print.add(weight.words.per_word);
  print.add(weight.words.bits);
  for (const int place : weight.words.order) print.add(static_cast<i64>(place));
  print.add(weight.zero_offset);
  if (weight.scale_dtype) print.add(to_string(*weight.scale_dtype));
}

std::string target_hash(const LogicalCheckpoint& source, const TargetLayout& target,
                        const OutputPlan& plan) {
  Fingerprint print;
  print.add(SHARDTOOL_VERSION);
  print.add(to_string(target.mesh));
  print.add(target.mapping);
  for (const format::PlannedFile& file : plan.files) {
    print.add(file.name);
    print.add(file.size);
    print.add(file.header_xxh3);
  }
  HolderHashes holders;
  for (size_t t = 0; t < target.tensors.size(); ++t) {
    const TargetTensor& tensor = target.tensors[t];
    const LogicalTensor& from = source.tensors[tensor.source];
    print.add(from.spec.name);
    if (from.cast_from || from.unpacked) print.add(to_string(from.spec.dtype));
    if (from.unpacked) add_unpacking(print, from.unpacked->weight());
    print.add(holders.of(tensor.holders));
    add_slots(print, plan.slots[t]);
    add_shifts(print, tensor.shifts);
    for (const std::string& transform : tensor.cut->transforms) print.add(transform);
    print.add(tensor.cut->bias);
  }
  return print.hex();
}

}  // namespace

std::string source_hash(const LogicalCheckpoint& source) {
  Fingerprint print;
  for (const format::Checkpoint& part : source.parts) {
    for (const format::SourceFile& file : part.files) {
      print.add(file.name);
      print.add(file.identity.size);
      print.add(file.identity.mtime_ns);
      print.add(file.identity.ctime_ns);
      print.add(static_cast<i64>(file.identity.inode));
      print.add(file.identity.version);
      print.add(file.header_xxh3);
    }
  }
  HolderHashes holders;
  for (const LogicalTensor& tensor : source.stored) add_slots(print, tensor.side.slots);
  for (const LogicalTensor& tensor : source.tensors) {
    print.add(tensor.spec.name);
    print.add(holders.of(tensor.side.holders));
    add_slots(print, tensor.side.slots);
    print.add(static_cast<i64>(tensor.digest.value_or(0)));
    add_shifts(print, tensor.shifts);
  }
  return print.hex();
}

std::string RunIdentity::id() const {
  const std::string both = text();
  return kernels::xxh3_hex(std::as_bytes(std::span(both)));
}

RunIdentity parse_run_identity(const std::string& text) {
  const size_t dash = text.find('-');
  if (dash == text.npos) return {};
  return {text.substr(0, dash), text.substr(dash + 1)};
}

RunIdentity run_identity(const LogicalCheckpoint& source, const TargetLayout& target,
                         const OutputPlan& plan) {
  return {source_hash(source), target_hash(source, target, plan)};
}

}  // namespace shardtool::api

#include "lib/api/transfer/sources/replicas.h"

#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::api {
namespace {

/// True if the holders have more elements than the tensor.
bool has_replicas(const LogicalTensor& tensor) {
  const index::HolderSet& holders = *tensor.side.holders;
  if (holders.size() == 1) return false;  // a holder has no element twice
  i64 held = 0;
  for (int h = 0; h < holders.size(); ++h) held += image_size(holders.region(h));
  return held > element_count(tensor.spec.shape).value_or(0);
}

}  // namespace

std::vector<DifferentReplicas> different_replicas(const LogicalCheckpoint& source,
                                                  std::span<const exec::SourceFile> files,
                                                  const exec::Resources& resources, Share share,
                                                  i64& copies) {
  std::vector<exec::TensorMove> moves;
  std::vector<const LogicalTensor*> compared;
  int number = 0;
  const auto add = [&](const LogicalTensor& tensor) {
    if (!has_replicas(tensor) || !tensor.shifts.empty()) return;  // shifted: compared when read
    if (number++ % share.of != share.number) return;
    moves.push_back(
        {tensor.spec.name, tensor.stored_dtype(), tensor.spec.shape, tensor.side, tensor.side, {}});
    compared.push_back(&tensor);
    copies += tensor.side.holders->size();
  };
  for (const LogicalTensor& tensor : source.tensors) add(tensor);
  for (const LogicalTensor& tensor : source.stored) add(tensor);
  exec::Resources quiet = resources;
  quiet.on_progress = nullptr;
  const auto differences = exec::compare(moves, files, files, quiet);
  std::vector<DifferentReplicas> different;
  for (size_t i = 0; i < differences.size(); ++i) {
    if (differences[i].bytes == 0) continue;
    const auto holder = static_cast<size_t>(differences[i].holder);
    const std::vector<i64>& ranks = compared[i]->ranks;
    const auto file = static_cast<size_t>(compared[i]->side.slots[holder].file);
    different.push_back({compared[i], differences[i],
                         ranks.empty() ? quote_for_message(source.files[file].path)
                                       : fmt::format("rank {}", ranks[holder])});
  }
  return different;
}

i64 compare_replicas(const LogicalCheckpoint& source, std::span<const exec::SourceFile> files,
                     const exec::Resources& resources, Share share) {
  i64 copies = 0;
  const auto different = different_replicas(source, files, resources, share, copies);
  if (different.empty()) return copies;
  const auto& [tensor, difference, holder] = different.front();
  throw Error(ErrorCode::kDataMismatch, fmt::format("replicas differ: {} has other bytes", holder))
      .tensor(tensor->spec.name)
      .note("first difference", fmt::format("byte {} of the whole tensor", difference.first))
      .note("bytes that differ", std::to_string(difference.bytes))
      .help(
          "one of the copies is damaged, and `check --read-data` names it where a manifest has its "
          "hash: split the checkpoint again, or take the first copy of each with --replicas first "
          "if that one is whole");
}

void require_equal(const LogicalCheckpoint& source, std::span<const mapping::LeftOut> left_out,
                   std::span<const exec::SourceFile> files, const exec::Resources& resources) {
  std::vector<exec::TensorMove> moves;
  for (const mapping::LeftOut& twin : left_out) {
    const LogicalTensor& tensor = source.tensors[twin.tensor];
    moves.push_back({tensor.spec.name,
                     tensor.spec.dtype,
                     tensor.spec.shape,
                     tensor.side,
                     source.tensors[twin.equal_to].side,
                     {}});
  }
  exec::Resources quiet = resources;
  quiet.on_progress = nullptr;
  const auto differences = exec::compare(moves, files, files, quiet);
  for (size_t i = 0; i < differences.size(); ++i) {
    if (differences[i].bytes == 0) continue;
    throw Error(ErrorCode::kTied, "two tensors must be equal to be stored once, and they differ")
        .tensor(moves[i].name)
        .note("other", source.tensors[left_out[i].equal_to].spec.name)
        .note("first difference", fmt::format("byte {} of the tensor", differences[i].first))
        .help("if the model does not tie them, set \"tie_word_embeddings\": false in config.json")
        .help("or remove \"same\" from the rule of \"store\" that leaves one of them out");
  }
}

}  // namespace shardtool::api

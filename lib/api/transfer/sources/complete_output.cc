#include "lib/api/transfer/sources/complete_output.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "kernels/xxh3/xxh3.h"
#include "lib/api/transfer/output_manifest.h"
#include "lib/exec/compare.h"
#include "lib/exec/files/range_hash.h"
#include "lib/exec/shifted.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

/// A hash of a manifest's text.
kernels::Hash128 text_hash(const format::Manifest& head, size_t tensors,
                           const std::function<format::TensorRecord(size_t)>& record) {
  kernels::Xxh3 hash;
  write_json(head, tensors, record,
             [&](std::string_view text) { hash.update(std::as_bytes(std::span(text))); });
  return hash.value();
}

void clear_data(format::TensorRecord& record) {
  record.digest.reset();
  record.is_unread = false;
  for (format::CastRecord& cast : record.casts) cast.digest.reset();
  if (record.dequantized) {
    for (format::StoredRecord& stored : record.dequantized->from) stored.digest.reset();
  }
  for (format::ShardRecord& shard : record.shards) shard.xxh3.reset();
}

/// Hash of a manifest without the fields that depend on the data.
kernels::Hash128 hash_without_data(const format::Manifest& manifest) {
  format::Manifest head = manifest;
  head.tensors.clear();
  for (format::FileRecord& file : head.files) file.sha256.clear();
  return text_hash(head, manifest.tensors.size(), [&](size_t t) {
    format::TensorRecord record = manifest.tensors[t];
    clear_data(record);
    return record;
  });
}

kernels::Hash128 planned_hash(const WriteRun& run) {
  return text_hash(
      manifest_head(run.source, run.target, run.plan), run.target.tensors.size(), [&](size_t t) {
        format::TensorRecord record = tensor_record(run.source, run.target, run.plan, t, {});
        clear_data(record);
        return record;
      });
}

/// Digest of a tensor of the output before the run's own cast; nullopt if the output has none.
std::optional<std::uint64_t> digest_before_cast(const exec::TensorMove& move,
                                                const format::TensorRecord& record) {
  return move.cast_to ? record.casts.back().digest : record.digest;
}

/// True if the output has what the run would write of a vector whose holders have shifted values.
bool has_shifted(const WriteRun& run, size_t t, const format::TensorRecord& record,
                 std::span<const exec::SourceFile> sources) {
  const TargetTensor& tensor = run.target.tensors[t];
  const auto made = exec::copy_shifted(
      {run.moves[t], run.source.tensors[tensor.source].shifts, tensor.shifts}, sources, {});
  return std::ranges::equal(made.xxh3, record.shards, {}, {}, &format::ShardRecord::xxh3);
}

bool has_content(const std::string& path, i64 bytes, const kernels::Hash128& hash) {
  return store::size_of(path) == bytes &&
         exec::hash_range(exec::SourceFile(path), 0, bytes) == hash;
}

/// True if the output has the files beside the weights as the run would write them.
bool has_other_files(const WriteRun& run, const WriteOptions& options) {
  const auto has = [&](const std::string& name, i64 bytes, const kernels::Hash128& hash) {
    return has_content(options.output + "/" + name, bytes, hash);
  };
  for (const OtherFile& file : other_files(run, options)) {
    if (file.text) {
      const auto text = std::as_bytes(std::span(*file.text));
      if (!has(file.name, std::ssize(text), kernels::xxh3(text))) return false;
      continue;
    }
    const exec::SourceFile from(file.from);
    if (!has(file.name, from.size(), exec::hash_range(from, 0, from.size()))) return false;
  }
  if (run.plan.summary_name.empty()) return true;
  i64 bytes = 0;
  kernels::Xxh3 hash;
  write_summary(run.source, run.target, run.plan, [&](std::string_view text) {
    bytes += std::ssize(text);
    hash.update(std::as_bytes(std::span(text)));
  });
  return has(run.plan.summary_name, bytes, hash.value());
}

}  // namespace

std::optional<format::Manifest> complete_output(const WriteRun& run, const WriteOptions& options) {
  const std::string path = options.output + "/" + format::kManifestName;
  store::forget_listing(options.output);
  const auto bytes = store::size_of(path);
  if (!bytes || !store::is_file(path)) return std::nullopt;
  for (const format::PlannedFile& file : run.plan.files) {
    if (store::size_of(options.output + "/" + file.name) != file.size) return std::nullopt;
  }
  const std::string text = store::read_source_text(path, *bytes);
  format::Manifest manifest = format::parse_manifest(text, path);
  const auto lacks_hash = [](const format::FileRecord& file) { return file.sha256.empty(); };
  const bool lacks_hashes = std::any_of(manifest.files.begin(), manifest.files.end(), lacks_hash);
  if (options.sha256 && lacks_hashes) return std::nullopt;
  if (hash_without_data(manifest) != planned_hash(run)) return std::nullopt;
  return manifest;
}

bool has_values_of(const WriteRun& run, const WriteOptions& options,
                   const format::Manifest& manifest) {
  if (!has_other_files(run, options)) return false;
  const auto sources = exec::open_sources(run.source.files, options.io);
  std::vector<exec::TensorMove> digested;
  std::vector<exec::TensorMove> compared;
  for (const size_t t : run.order) {
    const exec::TensorMove& move = run.moves[t];
    const auto digest = digest_before_cast(move, manifest.tensors[t]);
    if (is_shifted(run.source, run.target.tensors[t])) {
      if (!has_shifted(run, t, manifest.tensors[t], sources)) return false;
    } else if (!digest) {
      compared.push_back(move);
    } else if (move.expected_digest && !move.computed) {
      if (*move.expected_digest != *digest) return false;
    } else {
      digested.push_back(move);
      digested.back().expected_digest = digest;
    }
  }
  if (!exec::have_digests(digested, sources, options.resources)) return false;
  std::vector<exec::SourceFile> written;
  for (const format::PlannedFile& file : run.plan.files) {
    written.emplace_back(options.output + "/" + file.name);
  }
  return std::ranges::all_of(exec::compare(compared, sources, written, options.resources),
                             [](const exec::Difference& found) { return found.bytes == 0; });
}

}  // namespace shardtool::api

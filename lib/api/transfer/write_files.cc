#include "lib/api/transfer/write_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "lib/api/dequantize/dequantize.h"
#include "lib/api/transfer/config_text.h"
#include "lib/api/transfer/output_manifest.h"
#include "lib/api/transfer/sources/replicas.h"
#include "lib/base/error.h"
#include "lib/exec/copy.h"
#include "lib/exec/files/appender.h"
#include "lib/exec/files/file_hash.h"
#include "lib/exec/files/range_hash.h"
#include "lib/exec/fill.h"
#include "lib/index/region.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

constexpr const char* kConfigName = "config.json";
/// Files beside the weights that say how they are quantised.
constexpr auto kQuantisationNames = std::to_array<std::string_view>(
    {"hf_quant_config.json", "quantize_config.json", "quant_config.json"});

/// Copies over any content that the file has. Returns the number of copied bytes.
i64 copy_other_file(const std::string& from, store::File& to) {
  const exec::SourceFile file(from);
  std::vector<std::byte> buffer(1 << 20);
  for (i64 at = 0; at < file.size(); at += std::ssize(buffer)) {
    const auto part = std::span(buffer).first(
        static_cast<size_t>(std::min<i64>(file.size() - at, std::ssize(buffer))));
    file.read_exact(part, at);
    store::write_exact(to, part, at);
  }
  file.check_unchanged();
  store::set_size(to, file.size());
  return file.size();
}

/// Writes a file from its beginning by the pieces that `write_to` gives. Returns its size.
i64 write_pieces(const exec::TargetFile& file,
                 const std::function<void(const format::safetensors::Sink&)>& write_to) {
  i64 bytes = 0;
  exec::Appender appender;
  appender.begin(file);
  write_to([&](std::string_view text) {
    appender.append(text);
    bytes += std::ssize(text);
  });
  appender.finish();
  return bytes;
}

store::WrittenFile write_output_summary(const WriteRun& run, exec::IoMode mode,
                                        const OpenFile& open) {
  const std::string& name = run.plan.summary_name;
  store::File& opened = open(name);
  const i64 bytes =
      write_pieces(exec::TargetFile(opened, mode), [&](const format::safetensors::Sink& write) {
        write_summary(run.source, run.target, run.plan, write);
      });
  store::set_size(opened, bytes);
  return {name, bytes};
}

/// Changes of config.json.
struct ConfigChanges {
  std::optional<Dtype> dtype;
  bool drops_quantization = false;

  bool any() const { return dtype || drops_quantization; }
};

ConfigChanges config_changes(const WriteRun& run, const WriteOptions& options) {
  ConfigChanges changes{options.dtype, run.source.is_dequantized};
  if (!changes.drops_quantization) return changes;
  const auto config =
      run.target.config.empty() ? run.source.config() : run.source.load_config(run.target.config);
  if (config && !changes.dtype && !named_float_type(*config)) changes.dtype = kDefaultFloat;
  return changes;
}

std::string changed_config(const std::string& path, const ConfigChanges& changes) {
  std::string text = store::read_source_text(path, kMaxConfigBytes);
  if (changes.drops_quantization) text = without_quantization(text, kConfigName);
  if (changes.dtype) text = with_dtype(text, *changes.dtype, kConfigName);
  return text;
}

i64 write_other_file(const OtherFile& file, store::File& to) {
  if (!file.text) return copy_other_file(file.from, to);
  store::write_exact(to, std::as_bytes(std::span(*file.text)), 0);
  store::set_size(to, std::ssize(*file.text));
  return std::ssize(*file.text);
}

/// Fills padding with the repeated elements and hashes those shards again.
void fill_padding(const WriteRun& run, size_t t, std::span<const exec::SourceFile> sources,
                  std::span<const exec::TargetFile> targets, exec::CopiedTensor& copied) {
  if (!run.target.tensors[t].fills) return;
  exec::fill(plan_fills(run.source, run.target, run.plan, t), sources, targets);
  const exec::TensorMove& move = run.moves[t];
  for (size_t h = 0; h < copied.xxh3.size(); ++h) {
    const exec::Slot& slot = move.to.slots[h];
    copied.xxh3[h] = exec::hash_range(
        targets[static_cast<size_t>(slot.file)].path(), slot.offset,
        exec::holder_bytes(*move.to.holders, static_cast<int>(h), move.result_dtype()));
  }
}

/// Throws kInternal if a byte may be missing, so that an incomplete output is never published.
void check_complete(const WriteRun& run, std::span<const exec::CopiedTensor> copied) {
  for (size_t t = 0; t < copied.size(); ++t) {
    if (is_complete(run, t, copied[t])) continue;
    throw Error(ErrorCode::kInternal, "a tensor was not wholly written: nothing was published")
        .tensor(run.moves[t].name)
        .help("please report this with the command line that led to it");
  }
}

}  // namespace

bool is_complete(const WriteRun& run, size_t t, const exec::CopiedTensor& copied) {
  const exec::TensorMove& move = run.moves[t];
  const bool is_there = copied.is_unread || copied.xxh3.size() == move.to.slots.size();
  return is_there && copied.is_whole == run.wants_whole[t];
}

void add_ranges(const WriteRun& run, size_t t, std::span<const kernels::Hash128> xxh3,
                std::vector<exec::WrittenRange>& ranges) {
  const exec::TensorMove& move = run.moves[t];
  for (size_t h = 0; h < xxh3.size(); ++h) {
    const exec::Slot& slot = move.to.slots[h];
    ranges.push_back(
        {slot.file, slot.offset,
         exec::holder_bytes(*move.to.holders, static_cast<int>(h), move.result_dtype()), xxh3[h]});
  }
}

namespace {

/// Move indices by the position of the first slot of a side.
std::vector<size_t> order_by(std::span<const exec::TensorMove> moves,
                             exec::MoveSide exec::TensorMove::*side) {
  struct Place {
    int file = 0;
    i64 offset = 0;
    size_t move = 0;
  };
  std::vector<Place> places;
  places.reserve(moves.size());
  for (size_t i = 0; i < moves.size(); ++i) {
    const exec::Slot& slot = (moves[i].*side).slots.front();
    places.push_back({slot.file, slot.offset, i});
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    const bool is_same = a.file == b.file && a.offset == b.offset;
    return is_same ? a.move < b.move : exec::lies_before(a, b);
  });
  std::vector<size_t> order;
  order.reserve(moves.size());
  for (const Place& place : places) order.push_back(place.move);
  return order;
}

}  // namespace

std::vector<size_t> source_order(std::span<const exec::TensorMove> moves) {
  return order_by(moves, &exec::TensorMove::from);
}

std::vector<size_t> output_order(std::span<const exec::TensorMove> moves) {
  return order_by(moves, &exec::TensorMove::to);
}

std::vector<exec::TargetFile> open_files(const WriteRun& run, exec::IoMode mode, FoundFiles found,
                                         const OpenFile& open) {
  std::vector<exec::TargetFile> targets;
  for (const format::PlannedFile& planned : run.plan.files) {
    store::File& file = open(planned.name);
    store::allocate(file, planned.size);
    if (found == FoundFiles::kKept) store::set_size(file, planned.size);
    targets.emplace_back(file, mode);
    if (run.extents == Extents::kShared) targets.back().allow_sharing();
  }
  return targets;
}

void write_frames(const WriteRun& run, std::span<const exec::TargetFile> targets) {
  exec::Appender appender;
  for (size_t f = 0; f < targets.size(); ++f) {
    appender.begin(targets[f]);
    write_file_frame(run.source, run.target, run.plan, f, [&](i64 offset, std::string_view bytes) {
      appender.seek(offset);
      appender.append(bytes);
    });
    appender.finish();
  }
  for (const ConstantPlace& place : run.plan.constants) {
    const std::string bytes = constant_bytes(constant_record((*run.target.output)[place.output]));
    targets[static_cast<size_t>(place.slot.file)].write(std::as_bytes(std::span(bytes)),
                                                        place.slot.offset);
  }
}

std::vector<OtherFile> other_files(const WriteRun& run, const WriteOptions& options) {
  if (!options.copy_other_files) return {};
  const ConfigChanges changes = config_changes(run, options);
  const format::Checkpoint& first = run.source.parts.front();
  std::vector<std::string> names = first.other_files;
  const bool has_config = std::ranges::find(names, kConfigName) != names.end();
  if (!run.target.config.empty() && !has_config) names.emplace_back(kConfigName);
  std::vector<OtherFile> files;
  for (const std::string& name : names) {
    const bool is_ours = name == format::kManifestName || name == run.plan.summary_name ||
                         std::any_of(run.plan.files.begin(), run.plan.files.end(),
                                     [&](const auto& file) { return file.name == name; });
    const bool is_of_quantisation =
        changes.drops_quantization &&
        std::ranges::find(kQuantisationNames, name) != kQuantisationNames.end();
    if (is_ours || is_of_quantisation) continue;
    const bool is_chosen = name == kConfigName && !run.target.config.empty();
    OtherFile& file =
        files.emplace_back(name, is_chosen ? run.target.config : first.other_path(name));
    if (changes.any() && name == kConfigName) file.text = changed_config(file.from, changes);
  }
  return files;
}

std::vector<store::WrittenFile> write_other_files(const WriteRun& run, const WriteOptions& options,
                                                  const OpenFile& open) {
  std::vector<store::WrittenFile> written;
  for (const OtherFile& file : other_files(run, options)) {
    written.push_back({file.name, write_other_file(file, open(file.name))});
  }
  if (!run.plan.summary_name.empty())
    written.push_back(write_output_summary(run, options.io, open));
  return written;
}

std::vector<store::WrittenFile> write_other_files(const WriteRun& run, const WriteOptions& options,
                                                  const std::string& folder) {
  store::OutputFiles files(folder);
  return write_other_files(
      run, options, [&](const std::string& name) -> store::File& { return files.create(name); });
}

void clear_padding(const WriteRun& run, size_t t, std::span<const exec::TargetFile> targets) {
  const exec::MoveSide& to = run.moves[t].to;
  const i64 element_bits = bits(run.moves[t].result_dtype());
  for (int h = 0; h < to.holders->size(); ++h) {
    const exec::Slot& slot = to.slots[static_cast<size_t>(h)];
    const auto clear = [&](i64 begin, i64 end) {  // in elements
      const i64 offset = begin * element_bits / CHAR_BIT;
      targets[static_cast<size_t>(slot.file)].clear(slot.offset + offset,
                                                    end * element_bits / CHAR_BIT - offset);
    };
    const index::AxisMap elements = flattened(to.holders->region(h));
    i64 end = 0;
    for (const index::Piece& piece : elements.pieces()) {
      if (piece.local > end) clear(end, piece.local);
      end = piece.local_end();
    }
    if (elements.local_size() > end) clear(end, elements.local_size());
  }
}

exec::FinishedTensors copy_tensors(const WriteRun& run, const std::vector<bool>& is_mine,
                                   const exec::FinishedTensors& finished,
                                   std::span<const exec::SourceFile> sources,
                                   std::span<const exec::TargetFile> targets,
                                   const exec::Resources& resources,
                                   const OnFinished& on_finished) {
  exec::FinishedTensors copied;
  std::vector<size_t> order;
  for (const size_t i : run.order) {
    const TargetTensor& tensor = run.target.tensors[i];
    if (!is_mine[i] || finished.contains(i)) continue;
    if (is_shifted(run.source, tensor)) {
      const auto& shifts = run.source.tensors[tensor.source].shifts;
      copied[i] = exec::copy_shifted({run.moves[i], shifts, tensor.shifts}, sources, targets);
      fill_padding(run, i, sources, targets, copied[i]);
      continue;
    }
    order.push_back(i);
  }
  std::mutex mutex;       // of `copied`
  std::mutex fill_mutex;  // one fill at a time: it holds rows in memory
  exec::copy({run.moves, order}, sources, targets, resources,
             [&](size_t i, const exec::CopiedTensor& tensor) {
               const size_t t = order[i];
               exec::CopiedTensor done = tensor;
               if (run.target.tensors[t].fills) {
                 const std::lock_guard lock(fill_mutex);
                 fill_padding(run, t, sources, targets, done);
               }
               const exec::TensorMove& move = run.moves[t];
               on_finished(t, done, byte_size(move.dtype, move.shape).value_or(0));
               const std::lock_guard lock(mutex);
               copied[t] = std::move(done);
             });
  return copied;
}

void check_copied(const WriteRun& run, std::span<const exec::CopiedTensor> copied) {
  check_complete(run, copied);
  std::map<std::string_view, size_t> number;
  if (!run.target.tied.empty()) {  // common case: skips the table of all names
    for (size_t t = 0; t < run.moves.size(); ++t) number[run.moves[t].name] = t;
  }
  check_tied(run.target.tied, [&](const std::string& name) -> std::optional<std::uint64_t> {
    const auto found = number.find(name);
    if (found == number.end() || !copied[found->second].is_whole) return std::nullopt;
    return copied[found->second].source_digest();
  });
}

std::vector<store::WrittenFile> complete_files(const WriteRun& run,
                                               std::span<const exec::CopiedTensor> copied,
                                               const WriteOptions& options,
                                               store::OutputFolder& folder) {
  check_copied(run, copied);
  std::vector<store::WrittenFile> written = write_other_files(
      run, options, [&](const std::string& name) -> store::File& { return folder.create(name); });
  for (const auto& file : run.plan.files) written.push_back({file.name, file.size});
  format::Manifest manifest = manifest_head(run.source, run.target, run.plan);
  if (options.sha256) add_file_hashes(manifest, folder.working_path(), options.resources);
  const auto record = [&](size_t t) {
    return tensor_record(run.source, run.target, run.plan, t, copied[t]);
  };
  written.push_back(write_manifest(manifest, copied.size(), record,
                                   folder.create(format::kManifestName), options.io));
  return written;
}

void check_tied(const std::vector<std::vector<std::string>>& tied, const DigestOf& digest) {
  for (const auto& group : tied) {
    const auto first = digest(group[0]);
    for (size_t i = 1; i < group.size() && first; ++i) {
      const auto other = digest(group[i]);
      if (!other || *other == *first) continue;
      throw Error(ErrorCode::kTied,
                  fmt::format("'{}' and '{}' are declared tied, but their bytes differ", group[0],
                              group[i]))
          .tensor(group[i])
          .help("remove the pair from \"tied\" when the two are separate weights");
    }
  }
}

void add_file_hashes(format::Manifest& manifest, const std::string& folder,
                     const exec::Resources& resources) {
  std::vector<exec::FileToHash> files;
  for (const auto& file : manifest.files) {
    files.push_back({folder + "/" + file.name, file.bytes, exec::FileHash::kSha256});
  }
  const std::vector<std::string> hashes = exec::hash_files(files, resources);
  for (size_t i = 0; i < hashes.size(); ++i) manifest.files[i].sha256 = hashes[i];
}

store::WrittenFile write_manifest(const format::Manifest& head, size_t count,
                                  const RecordOf& record, store::File& opened, exec::IoMode mode) {
  const exec::TargetFile file(opened, mode);
  return {format::kManifestName, write_pieces(file, [&](const format::safetensors::Sink& write) {
            write_json(head, count, record, write);
          })};
}

}  // namespace shardtool::api

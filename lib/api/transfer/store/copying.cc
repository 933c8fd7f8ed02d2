#include "lib/api/transfer/store/copying.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "lib/base/interruption.h"
#include "lib/base/text.h"
#include "lib/exec/workers.h"

namespace shardtool::api {
namespace {

constexpr i64 kRestThreads = 8;
constexpr i64 kBlockBytes = 4 << 20;
constexpr size_t kCopiesAtOnce = 16;

bool reads_anyway(const WriteOptions& options) {
  return options.verify || options.sha256;
}

/// Divides stretches in blocks that fit a buffer.
std::vector<exec::SameBytes> blocks_of(std::span<const exec::SameBytes> stretches) {
  std::vector<exec::SameBytes> blocks;
  for (const exec::SameBytes& same : stretches) {
    for (i64 at = 0; at < same.bytes; at += kBlockBytes) {
      blocks.push_back({{same.from.file, same.from.offset + at},
                        {same.to.file, same.to.offset + at},
                        std::min(kBlockBytes, same.bytes - at)});
    }
  }
  return blocks;
}

}  // namespace

StoreCopying::StoreCopying(const WriteRun& run, const WriteOptions& options,
                           const std::vector<exec::SourceFile>& sources)
    : run_(run),
      resources_(options.resources),
      sources_(sources),
      copies_(reads_anyway(options) ? StoreCopies() : StoreCopies(run)) {}

std::vector<i64> StoreCopying::parts_of(size_t file, i64 bytes, i64 part_bytes) const {
  return copies_.parts_of(file, bytes, part_bytes);
}

void StoreCopying::settle(const std::vector<store::s3::PartedObject>& objects, bool copies) {
  copies ? copies_.settle(objects) : copies_.copy_none();
}

bool StoreCopying::copy_first(store::s3::PartedOutput& output) {
  if (copies_.parts().empty()) return false;
  const store::s3::PartCopy first = request_of(copies_.parts().front());
  const std::string refusal = output.copy({&first, 1}).front();
  if (refusal.empty()) return true;
  note_refusal(refusal, "all data goes");
  copies_.copy_none();
  return false;
}

std::vector<bool> StoreCopying::copy(store::s3::PartedOutput& output,
                                     const std::vector<bool>& is_mine,
                                     std::vector<exec::CopiedTensor>& copied) {
  std::vector<bool> others = is_mine;
  if (copies_.parts().empty()) return others;
  std::vector<exec::SameBytes> to_send = copy_parts(output, is_mine);
  i64 unread = 0;
  for (size_t t = 0; t < run_.moves.size(); ++t) {
    if (!has(t) || !is_mine[t]) continue;
    others[t] = false;
    ++unread;
    copied[t].is_unread = true;
    copied[t].is_whole = run_.wants_whole[t];
  }
  const std::vector<exec::SameBytes> rests = rests_of(is_mine);
  to_send.insert(to_send.end(), rests.begin(), rests.end());
  send(output, to_send);
  for (const exec::SourceFile& source : sources_) source.check_unchanged();
  if (unread > 0) {
    warnings_.push_back(fmt::format(
        "the object store copied {} by itself, and the manifest has no hashes of what nobody has "
        "read; --verify reads and hashes all",
        plural(unread, "tensor")));
  }
  return others;
}

/// Has the store copy the parts of this process. Returns the stretches that it refuses to copy,
/// announced to the output.
std::vector<exec::SameBytes> StoreCopying::copy_parts(store::s3::PartedOutput& output,
                                                      const std::vector<bool>& is_mine) {
  std::vector<const StoreCopies::Part*> parts;
  for (const StoreCopies::Part& part : copies_.parts()) {
    if (is_mine[part.tensor]) parts.push_back(&part);
  }
  std::vector<exec::SameBytes> refused;
  std::string words;
  for (size_t begin = 0; begin < parts.size(); begin += kCopiesAtOnce) {
    check_interrupted();
    const auto now = std::span(parts).subspan(begin, std::min(kCopiesAtOnce, parts.size() - begin));
    std::vector<store::s3::PartCopy> requests;
    for (const StoreCopies::Part* part : now) requests.push_back(request_of(*part));
    const auto refusals = output.copy(requests);
    for (size_t i = 0; i < now.size(); ++i) {
      const StoreCopies::Part& part = *now[i];
      if (refusals[i].empty()) {
        copied_bytes_ += part.range.bytes;
        continue;
      }
      words = refusals[i];
      output.expect(part.object, part.range);
      refused.push_back(
          {part.from, {static_cast<int>(part.object), part.range.offset}, part.range.bytes});
    }
  }
  i64 bytes = 0;
  for (const exec::SameBytes& same : refused) bytes += same.bytes;
  if (bytes > 0) note_refusal(words, fmt::format("{} went", format_bytes(bytes)));
  return refused;
}

/// Stretches that this machine sends of the tensors that the store copies.
std::vector<exec::SameBytes> StoreCopying::rests_of(const std::vector<bool>& is_mine) const {
  std::vector<exec::SameBytes> rests;
  for (size_t t = 0; t < run_.moves.size(); ++t) {
    if (has(t) && is_mine[t]) rests.insert(rests.end(), rest_of(t).begin(), rest_of(t).end());
  }
  return rests;
}

SourceRequests StoreCopying::requests(const std::vector<bool>& is_mine) const {
  SourceRequests requests;
  for (const StoreCopies::Part& part : copies_.parts()) {
    if (!is_mine[part.tensor]) continue;
    ++requests.copies;
    requests.copied_bytes += part.range.bytes;
  }
  for (const exec::SameBytes& block : blocks_of(rests_of(is_mine))) {
    ++requests.requests;
    requests.bytes += block.bytes;
  }
  return requests;
}

/// Reads stretches of the source and sends them.
void StoreCopying::send(store::s3::PartedOutput& output,
                        std::span<const exec::SameBytes> stretches) const {
  const std::vector<exec::SameBytes> blocks = blocks_of(stretches);
  if (blocks.empty()) return;
  const i64 threads = std::clamp<i64>(resources_.store_memory / 2 / kBlockBytes, 1,
                                      std::min(kRestThreads, std::ssize(blocks)));
  std::atomic<size_t> next = 0;
  exec::run_workers(threads, [&](const std::atomic<bool>& stop) {
    std::vector<std::byte> buffer(kBlockBytes);
    for (size_t b = next++; b < blocks.size() && !stop; b = next++) {
      check_interrupted();
      const exec::SameBytes& block = blocks[b];
      const auto bytes = std::span(buffer).first(static_cast<size_t>(block.bytes));
      sources_[static_cast<size_t>(block.from.file)].read_exact(bytes, block.from.offset);
      output.write(static_cast<size_t>(block.to.file), bytes, block.to.offset);
    }
  });
}

store::s3::PartCopy StoreCopying::request_of(const StoreCopies::Part& part) const {
  const exec::SurveyedFile& source = run_.source.files[static_cast<size_t>(part.from.file)];
  return {part.object, part.number, store::s3::parse_url(source.path), source.identity.version,
          part.from.offset};
}

void StoreCopying::note_refusal(const std::string& refusal, const std::string& consequence) {
  warnings_.push_back(
      fmt::format("the object store refuses to copy data by itself ({}): {} through this machine",
                  refusal, consequence));
}

}  // namespace shardtool::api

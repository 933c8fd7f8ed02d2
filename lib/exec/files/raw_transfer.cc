#include "lib/exec/files/raw_transfer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <span>
#include <string_view>

#include "kernels/crc64/crc64.h"
#include "kernels/xxh3/xxh3.h"
#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/exec/files/page_buffer.h"
#include "lib/exec/resources.h"
#include "lib/exec/workers.h"
#include "lib/store/local/file.h"
#include "lib/store/local/sync_all.h"

namespace shardtool::exec {
namespace {

// Direct I/O is fastest in blocks of 2 to 4 MiB, buffered I/O in blocks that fit a core's cache.
constexpr i64 kBufferedBlock = 256 << 10;

/// Calls `move(offset, bytes)` for the blocks of [0, bytes) taken from the shared counter `next`.
void each_block(i64 bytes, i64 block, std::atomic<i64>& next, const std::atomic<bool>& stop,
                const std::function<void(i64, i64)>& move) {
  for (i64 at = next.fetch_add(block); at < bytes && !stop; at = next.fetch_add(block)) {
    check_interrupted();
    move(at, std::min(block, bytes - at));
  }
}

void each_block(i64 bytes, i64 block, const std::function<void(i64, i64)>& move) {
  std::atomic<i64> next = 0;
  const std::atomic<bool> stop = false;
  each_block(bytes, block, next, stop, move);
}

/// Fills the block with `content`, repeated.
void fill(std::span<std::byte> block, std::string_view content) {
  for (size_t at = 0; at < block.size(); at += content.size()) {
    std::memcpy(block.data() + at, content.data(), std::min(content.size(), block.size() - at));
  }
}

void write_whole(const store::File& file, i64 bytes, const PageBuffer& block,
                 const RawOptions& options) {
  const store::File direct = store::open_write_direct(file.path());
  each_block(bytes, options.direct_block, [&](i64 at, i64 size) {
    const i64 pages =
        direct.is_open() ? size / store::kDirectAlignment * store::kDirectAlignment : 0;
    const i64 done = pages > 0 ? store::write_direct(direct, block.first(pages), at) : 0;
    for (i64 rest = done; rest < size; rest += kBufferedBlock) {
      store::write_exact(file, block.first(std::min(kBufferedBlock, size - rest)), at + rest);
    }
  });
}

}  // namespace

void copy_buffered(const std::string& from, const std::string& to) {
  const store::File source = store::open_read(from);
  store::File target = store::create_new(to);
  const PageBuffer block(kBufferedBlock);
  each_block(identity(source).size, kBufferedBlock, [&](i64 at, i64 size) {
    store::read_exact(source, block.first(size), at);
    store::write_exact(target, block.first(size), at);
  });
  store::sync(target);
  target.close_checked();
}

void write_files(const std::vector<std::string>& paths, i64 bytes, const std::string& content,
                 const RawOptions& options) {
  std::deque<store::File> files;
  for (const std::string& path : paths) {
    files.push_back(store::create_new(path));
    store::allocate(files.back(), bytes);
  }
  std::atomic<size_t> next = 0;
  run_workers(std::min<i64>(options.threads, std::ssize(files)),
              [&](const std::atomic<bool>& stop) {
                const PageBuffer block(options.direct_block);
                fill(block.first(options.direct_block), content);
                for (size_t f = next++; f < files.size() && !stop; f = next++) {
                  write_whole(files[f], bytes, block, options);
                }
              });
  store::sync_all(files);
  for (store::File& file : files) file.close_checked();
}

void read_file(const std::string& path, ReadBy way, const RawOptions& options) {
  const store::File file = store::open_read(path);
  const store::File direct = way == ReadBy::kDirect ? store::open_read_direct(path) : store::File();
  const i64 bytes = identity(file).size;
  std::atomic<i64> next = 0;
  run_workers(options.threads, [&](const std::atomic<bool>& stop) {
    const PageBuffer block(options.direct_block);
    each_block(bytes, options.direct_block, next, stop, [&](i64 at, i64 size) {
      const i64 pages =
          direct.is_open() ? size / store::kDirectAlignment * store::kDirectAlignment : 0;
      const i64 done = pages > 0 ? store::read_direct(direct, block.first(pages), at) : 0;
      store::read_exact(file, block.first(size - done), at + done);
    });
  });
}

void digest_memory(i64 bytes) {
  const PageBuffer block(kBufferedBlock);
  fill(block.first(kBufferedBlock), "digest");
  kernels::Xxh3 hash;
  std::uint64_t crc = 0;
  each_block(bytes, kBufferedBlock, [&](i64, i64 size) {
    hash.update(block.first(size));
    crc = kernels::Crc64::extend(crc, block.first(size));
  });
  // Use the results, so that the compiler keeps the computation.
  if (hash.value() == kernels::Hash128{} && crc == 0)
    throw Error(ErrorCode::kInternal, "a hash of nothing");
}

}  // namespace shardtool::exec

#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lib/store/s3/client.h"
#include "lib/store/s3/upload.h"
#include "lib/store/s3/url.h"

namespace shardtool::store::s3 {

/// Parts of an object: each but the last has at least 5 MiB, and there are at most 10,000
/// (docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html).
inline constexpr i64 kLeastPartBytes = 5 << 20;
inline constexpr i64 kMostParts = 10'000;

/// Consecutive bytes of an object.
struct ByteRange {
  i64 offset = 0;
  i64 bytes = 0;

  i64 end() const { return offset + bytes; }
  auto operator<=>(const ByteRange&) const = default;
};

/// True if the ranges, in any order and perhaps overlapping, hold all bytes of `whole`.
bool covers(std::vector<ByteRange> ranges, const ByteRange& whole);

/// Object of an output: an upload that was begun, and the sizes of its parts in their order.
struct PartedObject {
  Url url;
  std::string upload;
  std::vector<i64> parts;
};

/// A part whose bytes another object of the same store has.
struct PartCopy {
  size_t object = 0;
  size_t part = 0;  ///< from 0
  Url source;
  std::string etag;
  i64 offset = 0;  ///< in the source
};

/// Objects whose bytes come in any order, from several threads and perhaps several processes.
///
/// Bytes are kept until their part is complete, and the thread that completes it sends it. What
/// this process will not complete, because others write the rest, is kept on the store as
/// fragments: objects PIECES/<object>-<offset>-<bytes>. So are bytes for which there is no memory.
/// A part is put together from its fragments by the process that finds them all.
///
/// P1 a part is sent only with all of its bytes; each byte has one value, whoever writes it, so
///    that a part or a fragment that is sent twice is the same
/// P2 the bytes in memory exceed `memory` only by those of one write per thread
class PartedOutput {
 public:
  /// `fragments` is the prefix of the fragments, which ends in '/'.
  PartedOutput(Client& client, std::vector<PartedObject> objects, Url fragments, i64 memory);

  /// Looks for the parts and fragments that earlier or other processes have sent. Returns the
  /// objects whose upload the service does not know.
  std::vector<size_t> take_up();
  /// True if the store has all bytes of the range.
  bool has(size_t object, const ByteRange& range) const;

  /// Counts an object that was made before, all of its parts included.
  void set_made(size_t object);

  /// Announces bytes that this process will write, each range once, before the first write; takes
  /// back a part of what was announced.
  void expect(size_t object, const ByteRange& range);
  void except(size_t object, const ByteRange& range);
  /// Takes bytes that were announced. Sends what they complete before it returns. Throws the errors
  /// of the client.
  void write(size_t object, std::span<const std::byte> bytes, i64 offset);

  /// Has the service make parts of bytes of other objects, all at once; parts that were sent are
  /// left alone. Returns for each an empty text, or the words of its refusal. Throws kInputChanged
  /// if a source is no longer the one of `etag`.
  std::vector<std::string> copy(std::span<const PartCopy> copies);
  bool is_sent(size_t object, size_t part) const;

  /// Puts parts together from fragments. Returns true if the service now has every part.
  bool gather();
  /// Makes the objects. Throws kInternal unless every part was sent.
  void complete();
  /// Ends all uploads; what cannot be ended, list_uploads finds.
  void abort() noexcept;

  const PartedObject& object(size_t number) const { return objects_[number]; }
  /// Most bytes that waited in memory at any time.
  i64 peak_bytes() const;

 private:
  /// Bytes of a part that are in memory.
  struct Waiting {
    explicit Waiting(i64 size);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

    std::byte* memory;
    i64 size;                       ///< of the whole part
    std::vector<ByteRange> ranges;  ///< of the object
    i64 bytes = 0;
    int writers = 0;
  };
  struct Part {
    ByteRange range;
    i64 expected = 0;  ///< bytes that this process writes
    i64 arrived = 0;   ///< of these
    std::string etag = {};
    std::vector<ByteRange> fragments = {};
    int leaving = 0;  ///< threads that send fragments of it for want of memory
    std::shared_ptr<Waiting> waiting = {};

    bool is_sent() const { return !etag.empty(); }
  };
  struct Place {
    size_t object = 0;
    size_t part = 0;
    auto operator<=>(const Place&) const = default;
  };
  class Sending;

  Part& at(const Place& place) { return parts_[place.object][place.part]; }
  size_t part_with(size_t object, i64 offset) const;
  void count_expected(size_t object, const ByteRange& range, int sign);
  void write_in(const Place& place, std::span<const std::byte> bytes, i64 offset);
  void make_room(std::unique_lock<std::mutex>& lock, i64 bytes);
  std::shared_ptr<Waiting> take(const Place& place);
  void end(const Place& place, const Waiting& waiting);
  void send_part(const Place& place, const std::byte* memory);
  void send_fragments(const Place& place, const Waiting& waiting);
  void read_fragments(const Place& place, std::byte* memory);
  Url fragment_url(size_t object, const ByteRange& range) const;
  void take_up_fragments();

  Client& client_;
  std::vector<PartedObject> objects_;
  Url fragments_;
  i64 memory_;

  mutable std::mutex mutex_;  ///< guards the members below
  std::condition_variable sent_;
  std::vector<std::vector<Part>> parts_;
  std::set<Place> waiting_;  ///< parts with bytes in memory
  i64 held_ = 0;             ///< bytes in memory, those that are being sent included
  i64 peak_ = 0;
  int sending_ = 0;
  std::vector<bool> is_made_;
};

}  // namespace shardtool::store::s3

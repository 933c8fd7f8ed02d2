#include "lib/format/dcp/open.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/dcp/files.h"
#include "lib/format/dcp/metadata.h"
#include "lib/format/dcp/read_blob.h"
#include "lib/format/folder_listing.h"
#include "lib/format/names.h"
#include "lib/format/torch/unpickle.h"

namespace shardtool::format::dcp {
namespace {

/// A chunk of a tensor of the metadata.
struct ChunkNumber {
  size_t tensor = 0;
  size_t chunk = 0;
};

class Opening {
 public:
  Opening(Checkpoint& checkpoint, Metadata metadata, const ProblemSink& report)
      : checkpoint_(checkpoint), metadata_(std::move(metadata)), report_(report) {}

  void read(const std::vector<std::string>& first) {
    std::vector<std::vector<ChunkNumber>> chunks(metadata_.files.size());
    for (size_t t = 0; t < metadata_.tensors.size(); ++t) {
      const auto& of_tensor = metadata_.tensors[t].chunks;
      for (size_t c = 0; c < of_tensor.size(); ++c) chunks[of_tensor[c].file].push_back({t, c});
    }
    std::vector<ChunkNumber> none;
    for (const std::string& name : first) {
      const auto found = std::lower_bound(metadata_.files.begin(), metadata_.files.end(), name);
      const auto number = static_cast<size_t>(found - metadata_.files.begin());
      const bool is_known = found != metadata_.files.end() && *found == name;
      add_file(name, is_known ? chunks[number] : none);
    }
    for (size_t f = 0; f < metadata_.files.size(); ++f) {
      const std::string& name = metadata_.files[f];
      if (std::find(first.begin(), first.end(), name) == first.end()) add_file(name, chunks[f]);
    }
    if (!metadata_.objects.empty()) warn_of_objects();
  }

 private:
  const Chunk& at(const ChunkNumber& number) const {
    return metadata_.tensors[number.tensor].chunks[number.chunk];
  }

  static i64 end_of(const Chunk& chunk) {
    return checked_add(chunk.offset, chunk.length).value_or(std::numeric_limits<i64>::max());
  }

  void add_file(const std::string& name, std::vector<ChunkNumber>& numbers) {
    SourceFile source;
    source.name = name;
    source.path = store::resolved(checkpoint_.folder() + "/" + name);
    source.framework = "pt";
    try {
      read_file(source, numbers);
    } catch (const Error& problem) {
      if (store::is_of_store(problem)) throw;
      const bool is_missing = problem.code() == ErrorCode::kFileMissing;
      source.state = is_missing ? FileState::kMissing : FileState::kBroken;
      report_({is_missing ? ProblemKind::kFileMissing : ProblemKind::kUnreadable, problem, name});
    }
    checkpoint_.files.push_back(std::move(source));
  }

  void read_file(SourceFile& source, std::vector<ChunkNumber>& numbers) {
    require_inside(checkpoint_.folder(), source.name);
    const store::Reader file = store::open_reader(source.path);
    source.identity = store::identity(file);
    std::sort(numbers.begin(), numbers.end(), [this](const ChunkNumber& a, const ChunkNumber& b) {
      return at(a).offset < at(b).offset;
    });
    kernels::Xxh3 frame;
    for (const ChunkNumber& number : numbers) {
      try {
        add_chunk(file, source, number, frame);
      } catch (Error& problem) {
        if (problem.code() == ErrorCode::kUnreadable || store::is_of_store(problem)) throw;
        problem.tensor(quote_for_message(metadata_.tensors[number.tensor].name));
        source.state = FileState::kBroken;
        const bool is_outside = end_of(at(number)) > source.identity.size;
        report_(
            {is_outside ? ProblemKind::kTruncated : ProblemKind::kTorchFile, problem, source.name});
      }
    }
    source.header_xxh3 = frame.hex();
  }

  void add_chunk(const store::Reader& file, const SourceFile& source, const ChunkNumber& number,
                 kernels::Xxh3& frame) {
    const ChunkedEntry& tensor = metadata_.tensors[number.tensor];
    const Chunk& chunk = at(number);
    if (end_of(chunk) > source.identity.size) {
      throw Error(ErrorCode::kMalformed, "a chunk lies outside of its file")
          .at({source.path, 0, 0, ""})
          .tensor(quote_for_message(tensor.name))
          .note("found", fmt::format("{} bytes at {}", chunk.length, chunk.offset))
          .note("file", fmt::format("{} bytes", source.identity.size))
          .help("the file is truncated, or of another save: copy the folder again");
    }
    const i64 data = read_blob(file, tensor.name, tensor.dtype, chunk, frame);
    const i64 bytes = byte_size(tensor.dtype, chunk.shape).value_or(0);
    checkpoint_.header_bytes += chunk.length - bytes;
    checkpoint_.tensors.push_back(
        {tensor.name, tensor.dtype, chunk.shape, static_cast<int>(checkpoint_.files.size()), data,
         bytes, std::make_shared<const PartOf>(PartOf{tensor.shape, chunk.begin})});
  }

  void warn_of_objects() {
    const auto count = std::ssize(metadata_.objects);
    checkpoint_.warnings.push_back(
        {fmt::format("{} of the checkpoint {} no tensor{} and left out: {}",
                     count == 1 ? std::string("1 entry") : fmt::format("{} entries", count),
                     count == 1 ? "is" : "are", count == 1 ? "" : "s",
                     list_for_message(metadata_.objects)),
         std::string(kMetadataName), Oddity::kOtherEntry});
    for (std::string& name : metadata_.objects) checkpoint_.others.push_back({std::move(name)});
  }

  Checkpoint& checkpoint_;
  Metadata metadata_;
  const ProblemSink& report_;
};

Metadata read_metadata(const std::string& folder) {
  const std::string path = fmt::format("{}/{}", folder, kMetadataName);
  return parse_metadata(store::read_source_text(path, torch::kMaxPickleBytes), path);
}

}  // namespace

bool is_checkpoint(const std::string& folder) {
  return store::is_file(fmt::format("{}/{}", folder, kMetadataName));
}

void read_files(Checkpoint& checkpoint, const ProblemSink& report,
                const std::vector<std::string>& first) {
  require_inside(checkpoint.folder(), std::string(kMetadataName));
  Opening(checkpoint, read_metadata(checkpoint.folder()), report).read(first);
}

std::map<std::string, FileRecords> checksummed_records(const std::string& folder) {
  const Metadata metadata = read_metadata(folder);
  std::vector<std::vector<const Chunk*>> chunks(metadata.files.size());
  for (const ChunkedEntry& tensor : metadata.tensors) {
    for (const Chunk& chunk : tensor.chunks) chunks[chunk.file].push_back(&chunk);
  }
  std::map<std::string, FileRecords> all;
  for (size_t f = 0; f < chunks.size(); ++f) {
    require_inside(folder, metadata.files[f]);
    const std::string path = store::resolved(folder + "/" + metadata.files[f]);
    FileRecords& of_file = all[path];
    try {
      const store::Reader file = store::open_reader(path);
      for (const Chunk* chunk : chunks[f]) {
        for (auto& one : torch::read_zip_directory(file, chunk->offset, chunk->length).records) {
          if (one.crc32 != 0) of_file.records.push_back(std::move(one));
        }
      }
    } catch (const Error& error) {
      of_file.unreadable = error;
    }
    std::ranges::sort(of_file.records, {}, &torch::ZipRecord::offset);
  }
  return all;
}

}  // namespace shardtool::format::dcp

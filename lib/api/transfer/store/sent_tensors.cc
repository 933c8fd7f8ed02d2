#include "lib/api/transfer/store/sent_tensors.h"

#include <algorithm>

#include "lib/api/transfer/lone_run.h"
#include "lib/api/transfer/resume.h"
#include "lib/api/transfer/run_note.h"
#include "lib/api/transfer/shares.h"
#include "lib/api/transfer/store/budget.h"
#include "lib/base/error.h"
#include "lib/exec/files/range_hash.h"
#include "lib/store/reader.h"
#include "lib/store/s3/upload.h"

namespace shardtool::api {
namespace {

using store::s3::ByteRange;

ByteRange range_of(const WriteRun& run, size_t t, int holder) {
  const exec::TensorMove& move = run.moves[t];
  return {move.to.slots[static_cast<size_t>(holder)].offset,
          exec::holder_bytes(*move.to.holders, holder, move.result_dtype())};
}

/// Calls `visit` with file and range of each part of a tensor.
template <class Visit>
void for_each_range(const WriteRun& run, size_t t, Visit visit) {
  const exec::MoveSide& to = run.moves[t].to;
  for (int h = 0; h < to.holders->size(); ++h) {
    visit(static_cast<size_t>(to.slots[static_cast<size_t>(h)].file), range_of(run, t, h));
  }
}

}  // namespace

SentTensors::SentTensors(const WriteRun& run, const WriteOptions& options,
                         const std::vector<bool>& is_mine, const StorePlace& place,
                         const RunIdentity& identity)
    : run_(run),
      options_(options),
      is_mine_(is_mine),
      place_(place),
      identity_(identity),
      sources_(exec::open_sources(run.source.files, options.io)),
      copying_(run, options, sources_),
      journal_(place, identity.id(), {.bytes = options.journal_bytes},
               [this](size_t t) { return is_durable(t); }) {}

void SentTensors::begin() {
  const UploadTable known =
      place_.begin_uploads(identity_.id(), planned_uploads(), [this](UploadTable& own) {
        open(own);
        own.copies = table_.copies = copying_.copy_first(*output_);
      });
  if (!known.has_same_uploads(table_)) open(known);
}

/// Table of the run without ids, for a store that copies.
UploadTable SentTensors::planned_uploads() const {
  UploadTable table{identity_.text(), {}, true, {}};
  table.about = journal_title(identity_, options_, place_.prefix(), std::ssize(run_.moves)).about;
  const i64 part_bytes = part_bytes_for(run_.plan.files.size(), options_.resources);
  for (size_t f = 0; f < run_.plan.files.size(); ++f) {
    const format::PlannedFile& file = run_.plan.files[f];
    table.objects.push_back(
        {place_.url(file.name), "", copying_.parts_of(f, file.size, part_bytes)});
  }
  return table;
}

void SentTensors::open(const UploadTable& table) {
  table_ = table;
  copying_.settle(table_.objects, table_.copies);
  output_.emplace(store::s3::shared_client(), table_.objects, place_.fragments(identity_.id()),
                  memory_of_parts(options_.resources));
}

bool SentTensors::take_up(Former former) {
  if (!take_up_parts(*output_, former)) return false;
  for (auto& [t, copied] : listed_tensors(place_, identity_.id())) {
    const bool is_good = t < is_mine_.size() && is_mine_[t] && is_complete(run_, t, copied);
    if (is_good && is_durable(t)) finished_[t] = std::move(copied);
  }
  return true;
}

bool SentTensors::is_durable(size_t t) const {
  bool is_there = true;
  for_each_range(run_, t, [&](size_t file, const ByteRange& range) {
    is_there = is_there && output_->has(file, range);
  });
  return is_there;
}

/// Announces what this process writes: its tensors, but what the store copies of them, and the
/// first process all that is no tensor.
void SentTensors::expect() {
  if (leads(options_)) {
    for (size_t f = 0; f < run_.plan.files.size(); ++f) {
      output_->expect(f, {0, run_.plan.files[f].size});
    }
    for (size_t t = 0; t < run_.moves.size(); ++t) {
      for_each_range(run_, t,
                     [this](size_t file, const ByteRange& range) { output_->except(file, range); });
    }
  }
  const auto expect_range = [this](size_t file, const ByteRange& range) {
    output_->expect(file, range);
  };
  for (size_t t = 0; t < run_.moves.size(); ++t) {
    if (!is_mine_[t] || finished_.contains(t)) continue;
    if (!copying_.has(t)) {
      for_each_range(run_, t, expect_range);
      continue;
    }
    for (const exec::SameBytes& same : copying_.rest_of(t)) {
      expect_range(static_cast<size_t>(same.to.file), {same.to.offset, same.bytes});
    }
  }
}

void SentTensors::move(TransformReport& report) {
  expect();
  std::vector<exec::TargetFile> targets;
  for (size_t f = 0; f < run_.plan.files.size(); ++f) targets.emplace_back(*output_, f);
  if (leads(options_)) write_frames(run_, targets);
  const bool reads_store = std::ranges::any_of(sources_, &exec::SourceFile::is_remote);
  copied_.resize(run_.moves.size());
  const std::vector<bool> others = copying_.copy(*output_, is_mine_, copied_);
  auto moved = copy_tensors(run_, others, finished_, sources_, targets,
                            resources_of_moves(options_.resources, reads_store),
                            [this](size_t t, const exec::CopiedTensor& copied, i64 bytes) {
                              journal_.finished(t, copied, bytes);
                            });
  report_resumed(report);
  moved.merge(finished_);
  for (auto& [tensor, result] : moved) copied_[tensor] = std::move(result);
  count_changes(run_, copied_, report);
  report.warnings.insert(report.warnings.end(), copying_.warnings().begin(),
                         copying_.warnings().end());
}

void SentTensors::report_resumed(TransformReport& report) const {
  if (!options_.resume && finished_.empty()) return;
  TransformResumed& resumed = report.resumed.emplace();
  resumed.tensors = std::ssize(finished_);
  for (const auto& [t, copied] : finished_) {
    for_each_range(run_, t, [&](size_t, const ByteRange& range) { resumed.bytes += range.bytes; });
  }
}

void SentTensors::gather() {
  if (output_->gather()) return;
  throw Error(ErrorCode::kInternal, "an object was not wholly written: nothing was published")
      .at({place_.prefix(), 0, 0, {}})
      .help("please report this with the command line that led to it");
}

void SentTensors::complete() {
  output_->complete();
  store::forget_listing(place_.prefix());
  for (size_t t = 0; t < copied_.size(); ++t) {
    for (const int h : copied_[t].unhashed) {
      const auto number = static_cast<size_t>(h);
      const auto file = static_cast<size_t>(run_.moves[t].to.slots[number].file);
      const ByteRange range = range_of(run_, t, h);
      copied_[t].xxh3[number] =
          exec::hash_range(output_->object(file).url.text(), range.offset, range.bytes);
    }
  }
}

void SentTensors::check_sent(size_t t) const {
  if (is_complete(run_, t, copied_[t]) && is_durable(t)) return;
  throw Error(ErrorCode::kInternal, "a tensor of the share was not wholly written")
      .tensor(run_.moves[t].name)
      .help("please report this with the command line that led to it");
}

i64 SentTensors::listed_bytes() const {
  i64 bytes = journal_.listed_bytes();
  for (const auto& [t, copied] : finished_) {
    bytes += byte_size(run_.moves[t].dtype, run_.moves[t].shape).value_or(0);
  }
  return bytes;
}

void SentTensors::abort() {
  if (output_) output_->abort();
}

}  // namespace shardtool::api

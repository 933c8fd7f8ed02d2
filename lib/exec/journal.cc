#include "lib/exec/journal.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/xxh3/xxh3.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::exec {
namespace {

constexpr std::string_view kTitle = "shardtool-journal 3 ";
constexpr size_t kHashDigits = 32;
constexpr size_t kCounts = 5;
constexpr std::string_view kComputed = "computed";
constexpr size_t kLineWithoutHashes = 80;  ///< upper limit

/// Appends its check to a line.
std::string checked_line(std::string line) {
  const kernels::Hash128 check = kernels::xxh3(std::as_bytes(std::span(line)));
  line += ' ';
  check.append_hex(line);
  line += '\n';
  return line;
}

std::string counts_text(const kernels::CastCounts& counts) {
  return fmt::format("{},{},{},{},{}", counts.values, counts.rounded, counts.overflowed,
                     counts.underflowed, counts.nan);
}

std::string cast_text(const CastReport& cast) {
  return fmt::format("{:016x},{}", cast.source_digest, counts_text(cast.counts));
}

std::string computed_text(const ComputedReport& computed) {
  std::string text = fmt::format("{},{}", kComputed, counts_text(computed.counts));
  for (const std::uint64_t digest : computed.digests) {
    text += ',';
    append_hex(text, digest);
  }
  return text;
}

std::string line_of(size_t tensor, const CopiedTensor& copied) {
  std::string line;
  line.reserve(kLineWithoutHashes + (kHashDigits + 1) * copied.xxh3.size());
  line += fmt::format_int(tensor).c_str();
  line += ' ';
  append_hex(line, copied.digest);
  line += copied.is_whole ? " whole " : " part ";
  for (size_t i = 0; i < copied.xxh3.size(); ++i) {
    if (i > 0) line += ',';
    copied.xxh3[i].append_hex(line);
  }
  if (copied.cast) line += ' ' + cast_text(*copied.cast);
  if (copied.computed) line += ' ' + computed_text(*copied.computed);
  return checked_line(std::move(line));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <class Number>
bool parse(std::string_view text, Number& number, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

/// Parses the fields from `first` on, one per count.
bool parse_counts(std::span<const std::string_view> fields, kernels::CastCounts& counts) {
  const std::array numbers = {&counts.values, &counts.rounded, &counts.overflowed,
                              &counts.underflowed, &counts.nan};
  bool is_good = fields.size() == numbers.size();
  for (size_t i = 0; i < numbers.size() && is_good; ++i) {
    is_good = parse(fields[i], *numbers[i], 10);
  }
  return is_good;
}

std::optional<CastReport> parse_cast(std::string_view text) {
  const auto fields = split(text, ',');
  CastReport cast;
  const bool is_good = parse(fields[0], cast.source_digest, 16) &&
                       parse_counts(std::span(fields).subspan(1), cast.counts);
  return is_good ? std::optional(cast) : std::nullopt;
}

std::optional<ComputedReport> parse_computed(std::string_view text) {
  const auto fields = split(text, ',');
  if (fields.size() <= kCounts) return std::nullopt;
  ComputedReport computed;
  bool is_good = parse_counts(std::span(fields).subspan(1, kCounts), computed.counts);
  for (size_t i = kCounts + 1; i < fields.size() && is_good; ++i) {
    is_good = parse(fields[i], computed.digests.emplace_back(), 16);
  }
  return is_good ? std::optional(computed) : std::nullopt;
}

/// Parses the field about a change of the elements.
bool parse_change(std::string_view text, CopiedTensor& copied) {
  if (!text.starts_with(kComputed)) return (copied.cast = parse_cast(text)).has_value();
  return (copied.computed = parse_computed(text)).has_value();
}

/// Line without its check; nullopt if the check differs (J2).
std::optional<std::string_view> content_of(std::string_view line) {
  const size_t space = line.rfind(' ');
  if (space == line.npos || line.size() - space - 1 != kHashDigits) return std::nullopt;
  const std::string_view content = line.substr(0, space);
  if (kernels::xxh3_hex(std::as_bytes(std::span(content))) != line.substr(space + 1)) {
    return std::nullopt;
  }
  return content;
}

std::optional<std::pair<size_t, CopiedTensor>> parse_line(std::string_view line) {
  const auto content = content_of(line);
  if (!content) return std::nullopt;
  const auto fields = split(*content, ' ');
  std::pair<size_t, CopiedTensor> entry;
  auto& [tensor, copied] = entry;
  const bool has_change = fields.size() == 5;
  if (fields.size() != 4 && !has_change) return std::nullopt;
  if (!parse(fields[0], tensor, 10) || !parse(fields[1], copied.digest, 16)) return std::nullopt;
  if (has_change && !parse_change(fields[4], copied)) return std::nullopt;
  copied.is_whole = fields[2] == "whole";
  for (const std::string_view text : split(fields[3], ',')) {
    const auto hash = kernels::parse_hash128(text);
    if (!hash) return std::nullopt;
    copied.xxh3.push_back(*hash);
  }
  return entry;
}

std::string text_of(const std::string& path) {
  std::error_code absent;
  if (!exists(std::filesystem::symlink_status(path, absent))) return {};
  return store::read_text(store::open_own(path), std::numeric_limits<i64>::max());
}

/// First line without its end; empty if it was cut off.
std::string_view first_line(std::string_view text) {
  const size_t end = text.find('\n');
  return end == text.npos ? std::string_view() : text.substr(0, end);
}

std::string title_line(const JournalTitle& title) {
  return checked_line(fmt::format("{}{} {}", kTitle, title.run, title.about));
}

std::optional<JournalTitle> parse_title(std::string_view text) {
  const auto content = content_of(first_line(text));
  if (!content || !content->starts_with(kTitle)) return std::nullopt;
  const std::string_view words = content->substr(kTitle.size());
  const size_t space = std::min(words.find(' '), words.size());
  return JournalTitle{std::string(words.substr(0, space)),
                      std::string(words.substr(std::min(space + 1, words.size())))};
}

/// Lines after the first, or nullopt if the first is damaged or of another run.
std::optional<std::string_view> lines_of(std::string_view text, const std::string& run) {
  const auto title = parse_title(text);
  if (!title || title->run != run) return std::nullopt;
  return text.substr(text.find('\n') + 1);
}

/// Reads up to the first damaged or truncated line; `end` advances past the last good one.
FinishedTensors read_lines(std::string_view text, i64& end) {
  FinishedTensors finished;
  for (size_t at = 0, stop = text.find('\n'); stop != text.npos; stop = text.find('\n', at)) {
    auto entry = parse_line(text.substr(at, stop - at));
    if (!entry) break;
    finished.insert_or_assign(entry->first, std::move(entry->second));
    end += static_cast<i64>(stop + 1 - at);
    at = stop + 1;
  }
  return finished;
}

}  // namespace

std::string to_lines(const FinishedTensors& tensors) {
  std::string lines;
  for (const auto& [tensor, copied] : tensors) lines += line_of(tensor, copied);
  return lines;
}

FinishedTensors parse_lines(std::string_view lines) {
  i64 end = 0;
  return read_lines(lines, end);
}

FinishedTensors read_journal(const std::string& path, const std::string& run) {
  const std::string text = text_of(path);
  const auto lines = lines_of(text, run);
  return lines ? parse_lines(*lines) : FinishedTensors{};
}

Journal::Journal(std::string path, JournalTitle title, JournalLimits limits,
                 std::function<void()> make_durable)
    : path_(std::move(path)),
      title_(std::move(title)),
      limits_(limits),
      make_durable_(std::move(make_durable)) {}

FinishedTensors Journal::take_up() {
  const std::string text = text_of(path_);
  const auto lines = lines_of(text, title_.run);
  if (!lines) return {};
  size_ = std::ssize(text) - std::ssize(*lines);
  FinishedTensors finished = read_lines(*lines, size_);
  file_ = store::open_own_or_create(path_);
  store::set_size(file_, size_);
  return finished;
}

void Journal::finished(size_t tensor, const CopiedTensor& copied, i64 bytes) {
  const std::string line = line_of(tensor, copied);
  bool due = false;
  {
    const std::lock_guard lock(noted_mutex_);
    noted_ += line;
    noted_bytes_ += bytes;
    due = noted_bytes_ >= limits_.bytes || Clock::now() - last_commit_ >= limits_.time;
    if (due) last_commit_ = Clock::now();
  }
  if (due) commit();
}

void Journal::commit() {
  const std::lock_guard lock(commit_mutex_);
  std::string lines;
  {
    const std::lock_guard noted(noted_mutex_);
    lines.swap(noted_);
    noted_bytes_ = 0;
    last_commit_ = Clock::now();
  }
  if (lines.empty()) return;
  make_durable_();
  append(lines);
}

void Journal::append(const std::string& lines) {
  std::string text = lines;
  const bool begins = !file_.is_open();
  if (begins) {
    file_ = store::create_anew(path_);
    text.insert(0, title_line(title_));
  }
  store::write_exact(file_, std::as_bytes(std::span(text)), size_);
  size_ += std::ssize(text);
  store::sync(file_);
  if (begins) store::sync_folder(std::filesystem::path(path_).parent_path());
}

std::optional<JournalTitle> journal_title(const std::string& path) {
  return parse_title(text_of(path));
}

}  // namespace shardtool::exec

#include "cli/print/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>

#include "lib/api/catalogue/graphs.h"
#include "lib/api/catalogue/presets.h"
#include "lib/base/text.h"
#include "lib/format/names.h"
#include "lib/format/safetensors/safetensors.h"

namespace shardtool::cli {
namespace {

constexpr size_t kMaxMessage = 4000;

std::string escaped(std::string_view text) {
  return quote_for_message(text, kMaxMessage);
}

/// Escapes each line of a text and joins the lines with `indent`.
std::string escaped_lines(std::string_view text, std::string_view indent) {
  std::vector<std::string> lines;
  for (const std::string_view line : split_at(text, "\n")) lines.push_back(escaped(line));
  return fmt::format("{}", fmt::join(lines, fmt::format("\n{}", indent)));
}

/// Opens the JSON text of a safetensors file, which stands between its length and the data. In a
/// failed state for other files.
std::unique_ptr<std::istream> header_of(const std::string& path) {
  constexpr i64 kMost = format::safetensors::kMaxHeaderBytes;
  auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
  std::array<unsigned char, format::safetensors::kLengthBytes> length{};
  file->read(reinterpret_cast<char*>(length.data()), std::ssize(length));
  i64 bytes = 0;
  for (size_t i = length.size(); i-- > 0;) bytes = bytes > kMost ? bytes : bytes * 256 + length[i];
  if (!*file) return file;
  std::string text(static_cast<size_t>(std::min(bytes, kMost)), '\0');
  file->read(text.data(), std::ssize(text));
  text.resize(static_cast<size_t>(file->gcount()));
  return std::make_unique<std::istringstream>(std::move(text));
}

/// Opens the text that a place refers to: a built-in document or a file. If neither exists, the
/// stream is in a failed state.
std::unique_ptr<std::istream> source_text(const std::string& name) {
  const std::string document = name.substr(name.find(':') + 1);
  try {
    if (name == "preset:" + document) {
      return std::make_unique<std::istringstream>(api::preset_text(document));
    }
    if (name == "graph:" + document) {
      return std::make_unique<std::istringstream>(api::graph_text(document));
    }
  } catch (const Error&) {
    // A file with that name.
  }
  if (format::is_safetensors_name(name)) return header_of(name);
  return std::make_unique<std::ifstream>(name);
}

std::optional<std::string> source_line(const Place& place) {
  const auto text = source_text(place.file);
  std::string line;
  for (int i = 0; i < place.line; ++i) {
    if (!std::getline(*text, line)) return std::nullopt;
  }
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
}

/// Length of the JSON token at the front of `text`; at least 1.
size_t token_length(std::string_view text) {
  if (text.starts_with('"')) {
    const auto quote = text.find('"', 1);
    return quote == std::string_view::npos ? text.size() : quote + 1;
  }
  const auto end = std::min(text.find_first_of(" ,:]}"), text.size());
  return std::max<size_t>(end, 1);
}

/// Returns the line with a caret under the place; of a long line only the part around it.
std::string excerpt(const Place& place, const std::string& line, const Style& style) {
  constexpr size_t kBefore = 60;
  constexpr size_t kWidth = 120;
  const auto column = static_cast<size_t>(std::max(place.column, 1)) - 1;
  if (column > line.size()) return {};
  const bool is_whole = line.size() <= kWidth || column < kBefore;
  const size_t begin = is_whole ? 0 : character_boundary(line, column - kBefore);
  const size_t end = character_boundary(line, std::min(line.size(), begin + kWidth));
  const auto shown = std::string_view(line).substr(begin, end - begin);
  const auto caret_at = std::min(column - begin, shown.size());
  const auto carets = place.column == 0 ? 0 : token_length(shown.substr(caret_at));
  const auto number = fmt::format("{:>4}", place.line);
  std::string out = style.blue("     |") + "\n";
  out += style.blue(number + " |") + " " + escaped(shown) + "\n";
  if (carets == 0) return out;
  const auto before = display_width(escaped(shown.substr(0, caret_at)));
  return out + style.blue("     |") + " " + std::string(before, ' ') +
         style.red(std::string(carets, '^')) + "\n";
}

std::string place_text(const Place& place, const Style& style) {
  std::string out = style.blue("  -->") + " " + escaped(place.file);
  if (place.line > 0) out += fmt::format(":{}", place.line);
  if (place.line > 0 && place.column > 0) out += fmt::format(":{}", place.column);
  if (!place.pointer.empty()) out += "  " + escaped(place.pointer);
  out += "\n";
  if (place.line == 0) return out;
  const auto line = source_line(place);
  return line ? out + excerpt(place, *line, style) : out;
}

std::string note_text(std::string_view label, std::string_view text, const Style& style) {
  return fmt::format("   {} {}: {}\n", style.blue("="), escaped(label), escaped(text));
}

/// True if the error names a tensor and has no "tensor" note.
bool names_tensor_itself(const Error& error) {
  const auto& notes = error.notes();
  return !error.tensor_name().empty() &&
         std::none_of(notes.begin(), notes.end(),
                      [](const auto& note) { return note.first == "tensor"; });
}

}  // namespace

std::string error_text(const Error& error, const Style& style, bool verbose) {
  auto out = fmt::format("{}: {}\n", style.red(fmt::format("error[{}]", error.id())),
                         style.bold(escaped(error.message())));
  if (error.place()) out += place_text(*error.place(), style);
  if (names_tensor_itself(error)) out += note_text("tensor", error.tensor_name(), style);
  for (const auto& [label, text] : error.notes()) out += note_text(label, text, style);
  if (verbose) out += note_text("meaning", error_info(error.code()).explanation, style);
  for (const auto& help : error.help_lines()) {
    out += fmt::format("   {} {}\n", style.cyan("help:"), escaped_lines(help, "         "));
  }
  return out;
}

void write_error(JsonWriter& json, const Error& error, std::optional<int> status) {
  json.key("error").begin_object();
  json.field("code", error.id()).field("exit", status.value_or(error.exit_status()));
  json.field("message", error.message());
  if (const auto& place = error.place()) {
    json.field("file", place->file);
    if (place->line > 0) json.field("line", place->line);
    if (place->column > 0) json.field("column", place->column);
    if (!place->pointer.empty()) json.field("pointer", place->pointer);
  }
  if (!error.tensor_name().empty()) json.field("tensor", error.tensor_name());
  json.key("notes").begin_array();
  for (const auto& [label, text] : error.notes()) {
    json.begin_object().field("label", label).field("text", text).end_object();
  }
  json.end_array().list("help", error.help_lines());
  if (error.is_resumable()) json.field("resumable", true);
  json.end_object();
}

}  // namespace shardtool::cli

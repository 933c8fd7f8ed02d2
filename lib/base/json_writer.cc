#include "lib/base/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/base/json_text.h"

namespace shardtool {
namespace {

/// True if the text needs no escapes. A fast path: documents have a hundred thousand names.
bool stands_as_it_is(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; });
}

void append_any_quoted(std::string& out, std::string_view text) {
  if (stands_as_it_is(text)) {
    out.append("\"").append(text) += '"';
  } else {
    out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
}

}  // namespace

const JsonStyle kJsonDocument{", ", ": ", append_any_quoted};
const JsonStyle kJsonSpaced{", ", ": ", append_json_quoted};
const JsonStyle kJsonCompact{",", ":", append_json_quoted};

JsonWriter JsonWriter::inside(std::string& text, const JsonStyle& style) {
  JsonWriter writer(text, style);
  writer.open_.push_back({writer.one_line()});
  return writer;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  put_quoted(name);
  put(style_.colon);
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  put_quoted(text);
  return *this;
}

JsonWriter& JsonWriter::value(i64 number) {
  const fmt::format_int digits(number);
  return raw({digits.data(), digits.size()});
}

JsonWriter& JsonWriter::value(double number) {
  return std::isfinite(number) ? raw(fmt::format("{:.6g}", number)) : null();
}

JsonWriter& JsonWriter::exact(double number) {
  return raw(fmt::format("{}", number));
}

JsonWriter& JsonWriter::value(bool truth) {
  return raw(truth ? "true" : "false");
}

JsonWriter& JsonWriter::null() {
  return raw("null");
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  put(json);
  return *this;
}

JsonWriter& JsonWriter::open(char bracket, const JsonLines& lines) {
  separate();
  put({&bracket, 1});
  open_.push_back({lines});
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  if (open_.back().filled) put(open_.back().lines.after_last);
  open_.pop_back();
  put({&bracket, 1});
  if (open_.empty()) put("\n");
  return *this;
}

void JsonWriter::separate() {
  const bool follows_key = after_key_;
  after_key_ = false;
  if (follows_key || open_.empty()) return;
  Open& container = open_.back();
  put(container.filled ? container.lines.between : container.lines.before_first);
  container.filled = true;
}

void JsonWriter::put_quoted(std::string_view text) {
  if (text_ != nullptr) return style_.append_quoted(*text_, text);
  std::string quoted;
  style_.append_quoted(quoted, text);
  sink_(quoted);
}

}  // namespace shardtool

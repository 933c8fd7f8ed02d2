#include "lib/base/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace shardtool {
namespace {

/// True if the text needs no escapes. A fast path: documents have a hundred thousand names.
bool stands_as_it_is(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; });
}

std::string quoted(std::string_view text) {
  if (stands_as_it_is(text)) return std::string("\"").append(text) + '"';
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

JsonWriter& JsonWriter::key(std::string_view name) {
  raw(quoted(name));
  sink_(": ");
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  return raw(quoted(text));
}

JsonWriter& JsonWriter::value(i64 number) {
  return raw(fmt::format("{}", number));
}

JsonWriter& JsonWriter::value(double number) {
  return std::isfinite(number) ? raw(fmt::format("{:.6g}", number)) : null();
}

JsonWriter& JsonWriter::value(bool truth) {
  return raw(truth ? "true" : "false");
}

JsonWriter& JsonWriter::null() {
  return raw("null");
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  sink_(json);
  return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  sink_({&bracket, 1});
  filled_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  filled_.pop_back();
  sink_({&bracket, 1});
  if (filled_.empty()) sink_("\n");
  return *this;
}

void JsonWriter::separate() {
  const bool follows_key = after_key_;
  after_key_ = false;
  if (follows_key || filled_.empty()) return;
  if (filled_.back()) sink_(", ");
  filled_.back() = true;
}

}  // namespace shardtool

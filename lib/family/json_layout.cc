#include "lib/family/json_layout.h"

namespace shardtool::family {
namespace {

constexpr size_t kMaxLine = 120;

/// Appends the entries of an object or array, `separator` between them, by `append_value(entry)`.
template <class AppendValue>
void append_entries(const Json& value, const std::string& separator, std::string& out,
                    const AppendValue& append_value) {
  bool is_first = true;
  for (const auto& [key, entry] : value.items()) {
    if (!is_first) out += separator;
    is_first = false;
    if (value.is_object()) out += Json(key).dump() + ": ";
    append_value(entry);
  }
}

void append_line(const Json& value, std::string& out) {
  if (!value.is_structured()) {
    out += value.dump();
    return;
  }
  out += value.is_object() ? '{' : '[';
  append_entries(value, ", ", out, [&](const Json& entry) { append_line(entry, out); });
  out += value.is_object() ? '}' : ']';
}

bool is_op(const Json& value) {
  return value.is_object() && value.contains("op");
}

void append_laid_out(const Json& value, size_t indent, std::string& out) {
  const size_t line_begin = out.rfind('\n') + 1;
  std::string line;
  append_line(value, line);
  const bool fits = out.size() - line_begin + line.size() < kMaxLine;
  if (!value.is_structured() || (indent > 0 && (fits || is_op(value)))) {
    out += line;
    return;
  }
  const std::string margin = "\n" + std::string(indent + 2, ' ');
  out += (value.is_object() ? "{" : "[") + margin;
  append_entries(value, "," + margin, out,
                 [&](const Json& entry) { append_laid_out(entry, indent + 2, out); });
  out += "\n" + std::string(indent, ' ');
  out += value.is_object() ? '}' : ']';
}

}  // namespace

std::string laid_out(const Json& value) {
  std::string out = "\n";  // so that the first line begins behind a newline, as the others do
  append_laid_out(value, 0, out);
  return out.substr(1) + "\n";
}

}  // namespace shardtool::family

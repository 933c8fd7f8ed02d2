#include "cli/print/html/json_view.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lib/base/error.h"

namespace shardtool::cli {
namespace {

/// Runs `get` and turns errors of the JSON library, which are bugs of a page, into ours.
template <class Get>
auto need(const std::string& pointer, Get get) {
  try {
    return get();
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kInternal, fmt::format("a page reads '{}': {}", pointer, error.what()));
  }
}

std::string escaped_key(std::string_view key) {
  std::string text;
  for (const char c : key) {
    if (c == '~') {
      text += "~0";
    } else if (c == '/') {
      text += "~1";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

bool JsonView::has(std::string_view key) const {
  return value_->contains(key);
}

JsonView JsonView::operator[](std::string_view key) const {
  return need(pointer_ + "/" + std::string(key), [&] {
    return JsonView(value_->at(std::string(key)), pointer_ + "/" + escaped_key(key));
  });
}

JsonView JsonView::operator[](size_t index) const {
  return need(pointer_,
              [&] { return JsonView(value_->at(index), fmt::format("{}/{}", pointer_, index)); });
}

size_t JsonView::size() const {
  return value_->size();
}

bool JsonView::is_null() const {
  return value_->is_null();
}

std::vector<JsonView> JsonView::elements() const {
  std::vector<JsonView> all;
  for (size_t i = 0; i < size(); ++i) all.push_back((*this)[i]);
  return all;
}

std::vector<std::string> JsonView::keys() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : value_->items()) names.push_back(name);
  return names;
}

i64 JsonView::count() const {
  return need(pointer_, [&] { return value_->get<i64>(); });
}
double JsonView::number() const {
  return need(pointer_, [&] { return value_->get<double>(); });
}
bool JsonView::truth() const {
  return need(pointer_, [&] { return value_->get<bool>(); });
}
std::string JsonView::text() const {
  return need(pointer_,
              [&]() -> const std::string& { return value_->get_ref<const std::string&>(); });
}
std::string JsonView::json() const {
  return value_->dump();
}

}  // namespace shardtool::cli

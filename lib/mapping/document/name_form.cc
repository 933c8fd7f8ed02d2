#include "lib/mapping/document/name_form.h"

#include <algorithm>

namespace shardtool::mapping {
namespace {

constexpr std::string_view kAnyNumber = "000";
constexpr size_t kMostDigits = 18;

}  // namespace

bool is_number(std::string_view part) {
  return !part.empty() &&
         std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string name_form(std::string_view name) {
  std::string form;
  form.reserve(name.size());
  while (true) {
    const std::string_view part = name.substr(0, name.find('.'));
    form += is_number(part) ? "*" : part;
    if (part.size() == name.size()) return form;
    form += '.';
    name.remove_prefix(part.size() + 1);
  }
}

bool has_number(std::string_view name) {
  while (true) {
    const std::string_view part = name.substr(0, name.find('.'));
    if (is_number(part)) return true;
    if (part.size() == name.size()) return false;
    name.remove_prefix(part.size() + 1);
  }
}

void NumberedName::assign(std::string_view name) {
  form_.clear();
  numbers_.clear();
  begins_.clear();
  form_.reserve(name.size() + kMostDigits);
  while (true) {
    const std::string_view part = name.substr(0, name.find('.'));
    if (part.size() <= kMostDigits && is_number(part)) {
      numbers_.push_back(part);
      begins_.push_back(form_.size());
      form_ += kAnyNumber;
    } else {
      form_ += part;
    }
    if (part.size() == name.size()) return;
    form_ += '.';
    name.remove_prefix(part.size() + 1);
  }
}

std::optional<size_t> NumberedName::number_at(size_t begin, size_t size) const {
  const auto found = std::lower_bound(begins_.begin(), begins_.end(), begin);
  const bool is_there = found != begins_.end() && *found == begin && size == kAnyNumber.size();
  if (!is_there) return std::nullopt;
  return static_cast<size_t>(found - begins_.begin());
}

void NameTemplate::append(std::string_view literal) {
  if (pieces_.empty() || pieces_.back().number) pieces_.emplace_back();
  pieces_.back().literal += literal;
}

bool NameTemplate::append_piece(const NumberedName& name, size_t begin, size_t size) {
  const size_t end = begin + size;
  for (size_t n = 0; n < name.begins_.size() && begin < end; ++n) {
    const size_t number = name.begins_[n];
    if (number + kAnyNumber.size() <= begin || number >= end) continue;
    if (number < begin || number + kAnyNumber.size() > end) return false;
    append(std::string_view(name.form_).substr(begin, number - begin));
    pieces_.back().number = n;
    begin = number + kAnyNumber.size();
  }
  append(std::string_view(name.form_).substr(begin, end - begin));
  return true;
}

std::string NameTemplate::fill(const NumberedName& name) const {
  std::string text;
  for (const Piece& piece : pieces_) {
    text += piece.literal;
    if (piece.number) text += name.numbers_[*piece.number];
  }
  return text;
}

}  // namespace shardtool::mapping

#include "lib/format/torch/state_dict.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/names.h"
#include "lib/format/torch/storage.h"

namespace shardtool::format::torch {
namespace {

constexpr int kMaxDepth = 100;

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = utf8_length(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

/// True for a dict and for an object of a class that only adds behaviour to dicts.
bool is_dict(PickleValue value) {
  if (value.is(ValueKind::kDict)) return true;
  if (!value.is(ValueKind::kObject)) return false;
  const PickleValue callable = value.callable();
  return callable.is_global("collections", "OrderedDict") ||
         callable.is_global("collections", "defaultdict") ||
         callable.is_global("__builtin__", "dict") || callable.is_global("builtins", "dict");
}

bool is_sequence(PickleValue value) {
  return value.is(ValueKind::kList) || value.is(ValueKind::kTuple);
}

/// Calls `visit` for every part of a value, except the name of a class. Returns true as soon as it
/// does.
template <class Visit>
bool any_part(PickleValue value, const Visit& visit) {
  for (size_t i = 0; i < value.size(); ++i) {
    if (visit(value[i])) return true;
  }
  for (size_t i = 0; i < value.entries(); ++i) {
    if (visit(value.key(i)) || visit(value.value(i))) return true;
  }
  if (value.is(ValueKind::kPersistent)) return visit(value.persistent_id());
  if (!value.is(ValueKind::kObject)) return false;
  const auto state = value.state();
  return visit(value.callable()) || visit(value.arguments()) || (state && visit(*state));
}

/// Walks a saved object.
class Walk {
 public:
  Walk(const Archive& archive, const std::string& path)
      : archive_(archive), path_(path), holds_data_(archive.tree.size(), Answer::kUnknown) {
    most_bytes_ = kFreeBytes + kBytesPerValue * static_cast<i64>(archive.tree.size());
  }

  StateDict run() {
    const PickleValue root = archive_.tree.root();
    if (!holds_data(root, 0)) {
      throw error(ErrorCode::kUnsupported, "the file holds no tensor")
          .note("found", describe(root))
          .help("name the file that holds the weights");
    }
    if (is_tensor(root)) {
      throw error(ErrorCode::kUnsupported, "the file holds a tensor that has no name")
          .help("save it in a dict: torch.save({\"NAME\": tensor}, path)");
    }
    visit("", root, 0);
    refuse_duplicates();
    return std::move(result_);
  }

 private:
  enum class Answer : std::uint8_t { kUnknown, kNo, kYes };
  /// Memory for places and their names: an allowance, and so much per value. A tensor of a state
  /// dict has ten values or more and one place; tied parts have more places.
  static constexpr i64 kFreeBytes = 64 << 20;
  static constexpr i64 kBytesPerValue = 256;
  static constexpr i64 kBytesPerPlace = 128;

  Error error(ErrorCode code, const std::string& message) const {
    return Error(code, message).at({path_, 0, 0, ""});
  }

  /// Adds the entry that an error is about; the saved object itself is none.
  static Error inside(const std::string& name, Error error) {
    if (!name.empty()) error.note("entry", quote_for_message(name));
    return error;
  }

  /// True if a tensor or a storage is below the value. Each value is looked into once. A value that
  /// contains itself is not looked into again.
  bool holds_data(PickleValue value, int depth) {
    Answer& known = holds_data_[value.id()];
    if (known != Answer::kUnknown) return known == Answer::kYes;
    if (depth > kMaxDepth) throw error(ErrorCode::kLimit, "the saved object nests too deep");
    known = Answer::kNo;
    const bool found =
        is_tensor(value) || value.is(ValueKind::kPersistent) ||
        any_part(value, [&](PickleValue part) { return holds_data(part, depth + 1); });
    if (found) holds_data_[value.id()] = Answer::kYes;
    return found;
  }

  /// Accounts for a place with this name.
  void spend(const std::string& name) {
    spent_bytes_ += kBytesPerPlace + std::ssize(name);
    if (spent_bytes_ <= most_bytes_) return;
    throw error(ErrorCode::kLimit,
                "the saved object shares its values at too many places or joins too long names")
        .note("expected", "places and names that take at most " + format_bytes(most_bytes_));
  }

  void visit(const std::string& name, PickleValue value, int depth) {
    spend(name);
    if (depth > kMaxDepth) throw error(ErrorCode::kLimit, "the saved object contains itself");
    if (!holds_data(value, 0)) {
      result_.others.push_back({name, describe(value)});
    } else if (is_tensor(value)) {
      add_tensor(name, value);
    } else if (is_dict(value)) {
      visit_entries(name, value, depth);
    } else if (is_sequence(value)) {
      for (size_t i = 0; i < value.size(); ++i) {
        visit(joined(name, std::to_string(i)), value[i], depth + 1);
      }
    } else {
      refuse_object(name, value);
    }
  }

  void visit_entries(const std::string& name, PickleValue dict, int depth) {
    if (dict.is(ValueKind::kObject) && dict.state() && holds_data(*dict.state(), 0)) {
      refuse_object(name, dict);
    }
    for (size_t i = 0; i < dict.entries(); ++i) {
      visit(joined(name, key_text(name, dict.key(i), dict.value(i))), dict.value(i), depth + 1);
    }
  }

  std::string joined(const std::string& name, const std::string& key) const {
    return name.empty() ? key : name + "." + key;
  }

  /// The part of a name that a key gives. Only texts and integers give one.
  std::string key_text(const std::string& name, PickleValue key, PickleValue value) {
    if (key.is(ValueKind::kInteger)) return std::to_string(key.integer());
    if (key.is(ValueKind::kText) && is_utf8(key.text())) return std::string(key.text());
    if (!holds_data(value, 0) && !holds_data(key, 0)) return fmt::format("<{}>", describe(key));
    throw inside(name, error(ErrorCode::kTensorInvalid, "the key of a tensor gives it no name"))
        .note("found", key.is(ValueKind::kText) ? "a text that is not UTF-8" : describe(key))
        .note("expected", "a text or an integer");
  }

  void add_tensor(const std::string& name, PickleValue value) {
    names_.push_back(name);
    try {
      if (!is_distributed(value)) {
        result_.tensors.push_back({name, tensor_slot(value, archive_)});
        return;
      }
      for (DistributedSlot& slot : distributed_slots(value, archive_)) {
        spend(name);
        result_.tensors.push_back({name, std::move(slot.local), std::move(slot.part)});
      }
    } catch (Error& error) {
      error.tensor(quote_for_message(name));
      if (!error.place()) error.at({path_, 0, 0, ""});
      throw;
    }
  }

  [[noreturn]] void refuse_object(const std::string& name, PickleValue value) const {
    throw inside(name, error(ErrorCode::kUnsupported,
                             "the file holds tensors inside an object that is no dict"))
        .note("found", describe(value))
        .help(
            "load the file with torch and save the state dict: torch.save(model.state_dict(), "
            "path)");
  }

  void refuse_duplicates() const {
    std::vector<const std::string*> names;
    names.reserve(names_.size());
    for (const std::string& name : names_) names.push_back(&name);
    const std::string* twice = find_duplicate(std::move(names));
    if (twice == nullptr) return;
    throw error(ErrorCode::kTensorInvalid, "two tensors of the file have one name")
        .tensor(quote_for_message(*twice))
        .help("keys of nested dicts are joined by dots: rename one of the keys in torch");
  }

  const Archive& archive_;
  const std::string& path_;
  std::vector<Answer> holds_data_;  ///< per value
  i64 spent_bytes_ = 0;
  i64 most_bytes_ = 0;
  std::vector<std::string> names_;  ///< of tensors, once each also for those in parts
  StateDict result_;
};

}  // namespace

StateDict state_dict(const Archive& archive, const std::string& path) {
  return Walk(archive, path).run();
}

}  // namespace shardtool::format::torch

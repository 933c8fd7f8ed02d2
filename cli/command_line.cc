#include "cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cli/help_text.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

class Reader {
 public:
  explicit Reader(const CommandTree& tree) : tree_(tree) {}

  std::vector<Word> read(std::span<const std::string> words) {
    for (const auto& word : words) take(word);
    if (waiting_ != nullptr) throw missing_value();
    return std::move(read_);
  }

 private:
  void take(const std::string& word) {
    if (waiting_ != nullptr) return take_value(word);
    if (after_mark_) return take_positional(word);
    if (word == "--") return take_mark();
    if (word.starts_with("--")) return take_long(word);
    if (word.size() > 1 && word[0] == '-') return take_short(word);
    if (command_ == nullptr) return take_command(word);
    take_positional(word);
  }

  void add(const std::string& word, Role role) { read_.push_back({word, role}); }

  void take_mark() {
    after_mark_ = true;
    add("--", Role::kMark);
  }

  void take_value(const std::string& word) {
    if (word.starts_with("--") && find(word) != nullptr) throw missing_value();
    waiting_ = nullptr;
    add(word, Role::kValue);
  }

  void take_command(const std::string& word) {
    command_ = tree_.find(word);
    if (command_ == nullptr) throw unknown_command(word);
    add(word, Role::kCommand);
  }

  void take_positional(const std::string& word) {
    add(word, Role::kPositional);
    if (command_ == nullptr) return;
    const auto& arguments = command_->arguments;
    const auto places =
        std::count_if(arguments.begin(), arguments.end(),
                      [](const Argument& argument) { return argument.positional(); });
    const bool any_number = std::any_of(
        arguments.begin(), arguments.end(),
        [](const auto& argument) { return argument.positional() && argument.repeatable(); });
    if (++positionals_ <= places || any_number) return;
    throw Error(ErrorCode::kUsage,
                fmt::format("'{}' does not take '{}'", command_->name, quote_for_message(word)))
        .help(fmt::format("usage: {}", usage_line(*command_)));
  }

  void take_long(const std::string& word) {
    const auto equals = word.find('=');
    const auto name = word.substr(0, equals);
    const Argument* flag = find(name);
    if (flag == nullptr) throw unknown_flag(name);
    see(*flag);
    const bool has_value = equals != std::string::npos;
    if (has_value && !flag->takes_value()) {
      throw Error(ErrorCode::kUsage, fmt::format("flag '{}' takes no value", name));
    }
    waiting_ = flag->takes_value() && (!has_value || equals + 1 == word.size()) ? flag : nullptr;
    if (has_value && waiting_ != nullptr) throw missing_value();
    add(word, Role::kFlag);
  }

  /// Handles "-j4", "-j 4" and clusters of switches, "-qn".
  void take_short(const std::string& word) {
    for (size_t i = 1; i < word.size(); ++i) {
      const auto name = std::string{'-', word[i]};
      const Argument* flag = find(name);
      if (flag == nullptr) throw unknown_flag(name);
      see(*flag);
      if (!flag->takes_value()) continue;
      if (i + 1 == word.size()) waiting_ = flag;
      break;
    }
    add(word, Role::kFlag);
  }

  void see(const Argument& flag) {
    const bool once = flag.takes_value() && !flag.repeatable();
    if (once && std::find(seen_.begin(), seen_.end(), &flag) != seen_.end()) {
      throw Error(ErrorCode::kUsage, fmt::format("flag '{}' is given twice", flag.name));
    }
    seen_.push_back(&flag);
  }

  const Argument* find(std::string_view name) const {
    const auto found = command_ == nullptr ? nullptr : find_in(command_->arguments, name);
    return found != nullptr ? found : find_in(tree_.global, name);
  }

  static const Argument* find_in(const std::vector<Argument>& arguments, std::string_view name) {
    for (const auto& argument : arguments) {
      if (argument.positional()) continue;
      if (argument.name == name || argument.short_name == name) return &argument;
    }
    return nullptr;
  }

  Error missing_value() const {
    return Error(ErrorCode::kUsage, fmt::format("flag '{}' needs a value", waiting_->name))
        .help(fmt::format("write {} {}", waiting_->name, waiting_->value));
  }

  Error unknown_command(const std::string& word) const {
    std::vector<std::string> names;
    for (const auto& command : tree_.commands) names.push_back(command.name);
    Error error(ErrorCode::kUsage,
                fmt::format("there is no command '{}'", quote_for_message(word)));
    if (const auto hint = did_you_mean(word, names); !hint.empty()) error.help(hint);
    return std::move(error).help("`shardtool help` lists the commands");
  }

  Error unknown_flag(const std::string& name) const {
    Error error(
        ErrorCode::kUsage,
        command_ == nullptr
            ? fmt::format("there is no flag '{}' before a command", quote_for_message(name))
            : fmt::format("'{}' has no flag '{}'", command_->name, quote_for_message(name)));
    const auto hint = did_you_mean(name, flag_names());
    if (!hint.empty()) error.help(hint);
    if (const auto owners = commands_with(name); hint.empty() && !owners.empty()) {
      error.help(fmt::format("it is a flag of: {}", owners));
    }
    const auto topic = command_ == nullptr ? "" : " " + command_->name;
    return std::move(error).help(fmt::format("`shardtool help{}` lists the flags", topic));
  }

  std::vector<std::string> flag_names() const {
    std::vector<std::string> names;
    const auto collect = [&names](const std::vector<Argument>& arguments) {
      for (const auto& argument : arguments) {
        if (!argument.positional()) names.push_back(argument.name);
      }
    };
    if (command_ != nullptr) collect(command_->arguments);
    collect(tree_.global);
    return names;
  }

  std::string commands_with(std::string_view flag) const {
    std::string owners;
    for (const auto& command : tree_.commands) {
      if (find_in(command.arguments, flag) == nullptr) continue;
      owners += (owners.empty() ? "" : ", ") + command.name;
    }
    return owners;
  }

  const CommandTree& tree_;
  const Command* command_ = nullptr;
  const Argument* waiting_ = nullptr;  ///< a flag whose value is the next word
  bool after_mark_ = false;
  std::ptrdiff_t positionals_ = 0;
  std::vector<const Argument*> seen_;
  std::vector<Word> read_;
};

}  // namespace

std::vector<Word> read_words(std::span<const std::string> words, const CommandTree& tree) {
  return Reader(tree).read(words);
}

}  // namespace shardtool::cli

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/print/answer.h"
#include "lib/base/error.h"

namespace shardtool::cli {

/// Arguments of `shardtool COMMAND [list]` and `shardtool COMMAND show NAME`, as typed.
struct ShowArgs {
  std::optional<std::string> action = {};
  std::optional<std::string> name = {};
};

/// Arguments of a command that lists built-in documents or prints one of them; `kind` is a noun.
inline std::vector<Argument> show_arguments(ShowArgs& args, std::string_view kind) {
  return {{.name = "ACTION",
           .help = "show: print one " + std::string(kind) +
                   "; list: print the names of all, the default",
           .target = &args.action,
           .choices = {"show", "list"}},
          {.name = "NAME",
           .help = "with show: name of the " + std::string(kind),
           .target = &args.name}};
}

/// Prints the result of `list`, or the JSON document that `text` returns for a name.
template <class List, class Text>
ExitCode list_or_show(const ShowArgs& args, Session& session, std::string_view command,
                      std::string_view kind, List list, Text text) {
  const bool lists = !args.action || *args.action == "list";
  if (lists && args.name) {
    throw Error(ErrorCode::kUsage, std::string(command) + " list takes no name")
        .help("`shardtool " + std::string(command) + " show NAME` prints one");
  }
  if (!lists && !args.name) {
    throw Error(ErrorCode::kUsage, std::string(command) + " " + *args.action +
                                       " needs the name of a " + std::string(kind))
        .help("`shardtool " + std::string(command) + "` lists them");
  }
  if (lists) {
    answer(session, command, Status::kOk, list());
  } else if (const std::string document = text(*args.name); session.json()) {
    session.document(command, Status::kOk, [&](JsonWriter& json) {
      json.field("name", *args.name).key(kind).raw(document);
    });
  } else {
    session.out().write(document);
  }
  return ExitCode::kSuccess;
}

}  // namespace shardtool::cli

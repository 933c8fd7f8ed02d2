#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lib/base/checked.h"
#include "lib/base/name_map.h"
#include "lib/base/shape.h"

namespace shardtool::format::dcp {

/// Appends the opcodes of a pickle, protocol 2 (CPython, Lib/pickletools.py). The caller is
/// responsible for their order: arguments come before what takes them.
class PickleWriter {
 public:
  /// Appends to `out`, which outlives this object.
  explicit PickleWriter(std::string& out);

  void none() { out_ += 'N'; }
  void boolean(bool value) { out_ += value ? '\x88' : '\x89'; }
  void integer(i64 value);
  void text(std::string_view value);
  /// Same, but later uses of an equal text are short references.
  void shared_text(std::string_view value);
  /// Class or function of a module; later uses are short references.
  void global(std::string_view module, std::string_view name);

  void mark() { out_ += '('; }
  void tuple() { out_ += 't'; }          ///< of the values since the mark
  void empty_tuple() { out_ += ')'; }    ///< arguments of a call without arguments
  void tuple1() { out_ += '\x85'; }      ///< of the last value
  void empty_list() { out_ += ']'; }     ///< followed by mark, items, append_items
  void append_items() { out_ += 'e'; }   ///< of the values since the mark
  void empty_dict() { out_ += '}'; }     ///< followed by mark, keys and values, set_items
  void set_items() { out_ += 'u'; }      ///< of the pairs since the mark
  void call() { out_ += 'R'; }           ///< the global below the tuple of its arguments
  void persistent_id() { out_ += 'Q'; }  ///< of the last value
  /// Object of a class without arguments; set_state may follow.
  void object(std::string_view module, std::string_view name);
  void set_state() { out_ += 'b'; }  ///< of the object below the last value
  void stop() { out_ += '.'; }

  /// Tuple of integers.
  void integers(std::span<const i64> values);

 private:
  /// Writes a reference and returns true if the key was remembered before; else remembers it.
  bool recall(const std::string& key);
  void remember();
  void little_endian(i64 value, int bytes);

  std::string& out_;
  NameMap<i64> memo_;
};

}  // namespace shardtool::format::dcp

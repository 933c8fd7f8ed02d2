#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "lib/base/text.h"
#include "lib/mapping/document/decode.h"
#include "lib/mapping/document/identifier.h"

namespace shardtool::mapping {
namespace {

using layout::StrategyKind;

/// The arguments of a strategy beside "type"; "!" marks required ones.
std::vector<std::string_view> arguments(StrategyKind kind) {
  switch (kind) {
    case StrategyKind::kReplicate:
      return {};
    case StrategyKind::kRowwise:
    case StrategyKind::kColumnwise:
    case StrategyKind::kExpertParallel:
    case StrategyKind::kTensorParallel:
      return {"over", "uneven", "pad_to"};
    case StrategyKind::kAxiswise:
      return {"!axis", "over", "uneven", "pad_to"};
    case StrategyKind::kColumnParallel:
    case StrategyKind::kRowParallel:
      return {"kernel", "over", "uneven", "pad_to"};
    case StrategyKind::kHeadAwareColumnwise:
    case StrategyKind::kHeadAwareRowwise:
      return {"!num_heads", "!head_dim", "over", "uneven", "pad_to"};
    case StrategyKind::kStackedQkv:
      return {"!num_heads", "num_kv_heads", "!head_dim", "axis",  "order",
              "small",      "over",         "uneven",    "pad_to"};
    case StrategyKind::kGateUp:
      return {"axis", "parts", "layout", "over", "uneven", "pad_to"};
    case StrategyKind::kSegmented:
      return {"!segments", "axis", "over", "uneven", "pad_to"};
  }
  throw Error(ErrorCode::kInternal, "unknown strategy");
}

/// A word of PyTorch that is near to the wrong one of ours.
struct TorchWord {
  std::string_view word;
  std::string_view advice;
};
constexpr std::string_view kCutsOutputs =
    "PyTorch's ColwiseParallel cuts the outputs, which is 'column_parallel'; 'columnwise' cuts the "
    "second axis";
constexpr TorchWord kTorchWords[] = {
    {"colwise", kCutsOutputs},
    {"ColwiseParallel", kCutsOutputs},
    {"RowwiseParallel",
     "PyTorch's RowwiseParallel cuts the inputs, which is 'row_parallel'; 'rowwise' cuts the first "
     "axis"}};

StrategyKind decode_kind(const JsonValue& value) {
  const std::string name = value.text();
  if (const auto kind = layout::parse_strategy_kind(name)) return *kind;
  std::vector<std::string> known;
  for (int k = 0; k <= static_cast<int>(StrategyKind::kTensorParallel); ++k) {
    known.emplace_back(to_string(static_cast<StrategyKind>(k)));
  }
  Error e = value.error(ErrorCode::kUnknownName,
                        fmt::format("there is no strategy '{}'", quote_for_message(name, 60)));
  e.note("strategies", fmt::format("{}", fmt::join(known, ", ")));
  const auto* word = std::ranges::find(kTorchWords, name, &TorchWord::word);
  const std::string hint =
      word == std::end(kTorchWords) ? did_you_mean(name, known) : std::string(word->advice);
  if (!hint.empty()) e.help(hint);
  throw e;
}

SegmentSpec decode_segment(const JsonValue& value) {
  SegmentSpec segment;
  if (!value.is_object() || value.has("ref")) {
    segment.units = decode_size(value);
    return segment;
  }
  value.object({
      {"num_heads", [&](const JsonValue& v) { segment.units = decode_size(v); }, true},
      {"head_dim", [&](const JsonValue& v) { segment.unit = decode_size(v); }, true},
  });
  return segment;
}

std::vector<JsonValue::Field> strategy_fields(StrategySpec& spec) {
  using layout::GateUpOrder;
  using layout::Kernel;
  using layout::QkvOrder;
  return {
      {"type", [](const JsonValue&) {}, true},
      {"over", [&](const JsonValue& v) { spec.over = decode_mesh_ref(v); }},
      {"uneven", [&](const JsonValue& v) { spec.uneven = decode_uneven(v); }},
      {"pad_to", [&](const JsonValue& v) { spec.pad_to = v.integer(1); }},
      {"axis", [&](const JsonValue& v) { spec.axis = v.integer(); }},
      {"kernel",
       [&](const JsonValue& v) {
         spec.kernel = v.one_of<Kernel>({{"out_in", Kernel::kOutIn}, {"in_out", Kernel::kInOut}});
       }},
      {"num_heads", [&](const JsonValue& v) { spec.num_heads = decode_size(v); }},
      {"num_kv_heads", [&](const JsonValue& v) { spec.num_kv_heads = decode_size(v); }},
      {"head_dim", [&](const JsonValue& v) { spec.head_dim = decode_size(v); }},
      {"order",
       [&](const JsonValue& v) {
         spec.order = v.one_of<QkvOrder>({{"concat", QkvOrder::kConcat},
                                          {"per_head", QkvOrder::kPerHead},
                                          {"per_kv_group", QkvOrder::kPerKvGroup}});
       }},
      {"small", [&](const JsonValue& v) { spec.small = decode_small(v); }},
      {"layout",
       [&](const JsonValue& v) {
         spec.gate_up_order = v.one_of<GateUpOrder>(
             {{"stacked", GateUpOrder::kStacked}, {"interleaved", GateUpOrder::kInterleaved}});
       }},
      {"parts", [&](const JsonValue& v) { spec.parts = v.integer(2); }},
      {"segments",
       [&](const JsonValue& v) {
         for (const JsonValue& segment : v.elements(2))
           spec.segments.push_back(decode_segment(segment));
       }},
  };
}

/// The fields that a strategy accepts.
std::vector<JsonValue::Field> fields_of(StrategySpec& spec) {
  const auto taken = arguments(spec.kind);
  std::vector<JsonValue::Field> fields;
  for (JsonValue::Field& field : strategy_fields(spec)) {
    const bool needed = std::any_of(taken.begin(), taken.end(), [&](std::string_view argument) {
      return argument.starts_with('!') && argument.substr(1) == field.key;
    });
    const bool known = std::find(taken.begin(), taken.end(), field.key) != taken.end();
    if (!needed && !known && field.key != "type") continue;
    field.required = needed || field.key == "type";
    fields.push_back(std::move(field));
  }
  return fields;
}

std::vector<Dim> decode_dims(const JsonValue& value) {
  std::vector<Dim> dims;
  for (const JsonValue& element : value.elements()) {
    Dim dim;
    if (!element.is_null()) {
      const std::string text = element.nonempty_text();
      dim = element.located([&] { return parse_dim(text); });
    }
    dim.place = element.place();
    dims.push_back(std::move(dim));
  }
  return dims;
}

/// A pattern and the names of the numbers that it captures.
struct Compiled {
  Pattern pattern;
  std::vector<std::string> captures;
};

Compiled compile(const JsonValue& value, Pattern pattern) {
  const RE2 compiled(pattern.regex, RE2::Quiet);
  if (!compiled.ok()) {
    throw value.error(ErrorCode::kMappingSchema,
                      fmt::format("{} is not a regular expression (RE2 syntax): {}", value.name(),
                                  quote_for_message(compiled.error())));
  }
  Compiled result{std::move(pattern), {}};
  for (const auto& [name, group] : compiled.NamedCapturingGroups()) result.captures.push_back(name);
  return result;
}

std::vector<Compiled> decode_match(const JsonValue& value) {
  std::vector<Compiled> patterns;
  for (const JsonValue& name : decode_names(value)) {
    patterns.push_back(compile(name, pattern_of(decode_glob(name))));
  }
  return patterns;
}

/// Throws unless every pattern captures the numbers that the rule names.
template <class Meant>
void check_captures(const JsonValue& rule, std::string_view key,
                    const std::map<std::string, Meant>& named,
                    const std::vector<Compiled>& patterns) {
  for (const auto& [capture, meant] : named) {
    for (const Compiled& compiled : patterns) {
      const auto& names = compiled.captures;
      if (std::find(names.begin(), names.end(), capture) != names.end()) continue;
      Error e = rule.error(
          ErrorCode::kUnknownName,
          fmt::format("\"{}\" names the capture '{}', which the pattern '{}' does not have", key,
                      quote_for_message(capture, 60), quote_for_message(compiled.pattern.text)));
      e.help(fmt::format("write <{}> where the number stands in the name",
                         quote_for_message(capture, 60)));
      throw e;
    }
  }
}

void require_one_of(const JsonValue& value, const std::string& a, const std::string& b) {
  if (value.has(a) != value.has(b)) return;
  throw value
      .error(ErrorCode::kMappingSchema, fmt::format("{} has {} \"{}\" and \"{}\"", value.name(),
                                                    value.has(a) ? "both" : "neither", a, b))
      .help(fmt::format("a rule has one of \"{}\" and \"{}\"", a, b));
}

std::map<std::string, std::string> decode_index(const JsonValue& value) {
  std::map<std::string, std::string> index;
  for (const auto& [capture, axis] : value.members()) index[capture] = axis.identifier();
  return index;
}

/// Refuses "pad_to" where the strategy does not pad.
void check_padding(const JsonValue& value, const StrategySpec& spec) {
  if (spec.uneven == Uneven::kPad) return;
  for (const auto& [key, member] : value.members()) {
    if (key != "pad_to") continue;
    throw member
        .error(ErrorCode::kMappingSchema,
               fmt::format("the strategy '{}' has \"pad_to\" without \"uneven\": \"pad\"",
                           to_string(spec.kind)))
        .help("add \"uneven\": \"pad\", or leave \"pad_to\" out");
  }
}

/// Decodes {"layers": 0} or {"layers": [0, -1]}.
std::map<std::string, std::vector<i64>> decode_at(const JsonValue& value) {
  std::map<std::string, std::vector<i64>> at;
  for (const auto& [axis, numbers] : value.members()) {
    if (!is_identifier(axis)) numbers.refuse("the name of an axis as its key");
    if (!numbers.is_array()) {
      at[axis] = {numbers.integer()};
      continue;
    }
    for (const JsonValue& number : numbers.elements()) at[axis].push_back(number.integer());
    if (at[axis].empty()) numbers.refuse("at least one number");
  }
  return at;
}

/// Decodes "after_reduction", "first_and_zeros" or "plain"; plain is "" in the result.
std::string decode_bias(const JsonValue& value) {
  return value.one_of<const char*>({{"after_reduction", "after_reduction"},
                                    {kFirstAndZeros.data(), kFirstAndZeros.data()},
                                    {"plain", ""}});
}

}  // namespace

std::map<std::string, LayerSet> decode_where(const JsonValue& value, const LayerSets& sets) {
  std::map<std::string, LayerSet> where;
  for (const auto& [capture, set] : value.members())
    where[capture] = decode_layer_set(set, sets, {});
  return where;
}

std::vector<Dtype> decode_dtypes(const JsonValue& value) {
  std::vector<Dtype> dtypes;
  for (const JsonValue& name : decode_names(value)) {
    const auto dtype = parse_dtype(name.text());
    if (!dtype) {
      throw name
          .error(ErrorCode::kUnknownName,
                 fmt::format("there is no dtype '{}'", quote_for_message(name.text(), 60)))
          .help("dtypes have the names of safetensors: F32, F16, BF16, F8_E4M3, I64, ...");
    }
    dtypes.push_back(*dtype);
  }
  return dtypes;
}

Glob decode_glob(const JsonValue& value) {
  const std::string text = value.nonempty_text();
  return value.located([&] { return Glob(text); });
}

std::vector<Glob> decode_globs(const JsonValue& value) {
  std::vector<Glob> globs;
  for (const JsonValue& name : decode_names(value)) globs.push_back(decode_glob(name));
  return globs;
}

std::vector<JsonValue> decode_names(const JsonValue& value) {
  if (value.is_text()) return {value};
  return value.elements(1);
}

StrategySpec decode_strategy(const JsonValue& value) {
  StrategySpec spec;
  if (value.is_text()) {
    spec.kind = decode_kind(value);
    const auto taken = arguments(spec.kind);
    std::string needed;
    for (const std::string_view argument : taken) {
      if (argument.starts_with('!')) needed += fmt::format(", \"{}\": ...", argument.substr(1));
    }
    if (!needed.empty())
      value.refuse(fmt::format("an object {{\"type\": \"{}\"{}}}", to_string(spec.kind), needed));
    return spec;
  }
  for (const auto& [key, member] : value.members()) {
    if (key == "type") spec.kind = decode_kind(member);
  }
  value.object(fields_of(spec));
  check_padding(value, spec);
  return spec;
}

namespace {

/// Number of sections of the axis that has several; 1 if no axis does, nullopt if several do.
std::optional<size_t> count_sections(const Rule& rule) {
  if (const auto* strategy = std::get_if<StrategySpec>(&rule.cut))
    return std::max<size_t>(1, strategy->segments.size());
  std::optional<size_t> sections = 1;
  for (const Dim& dim : std::get<std::vector<Dim>>(rule.cut)) {
    if (dim.sections.size() < 2) continue;
    if (sections != 1) return std::nullopt;
    sections = dim.sections.size();
  }
  return sections;
}

std::vector<std::string> decode_sections(const JsonValue& value) {
  std::vector<std::string> names;
  for (const JsonValue& element : value.elements()) names.push_back(element.identifier());
  return names;
}

void check_sections(const JsonValue& value, const Rule& rule) {
  if (rule.sections.empty()) return;
  const std::optional<size_t> sections = count_sections(rule);
  if (sections == rule.sections.size() && sections != 1) return;
  throw value
      .error(ErrorCode::kMappingSchema,
             fmt::format("\"sections\" has {}, but {}", plural(std::ssize(rule.sections), "name"),
                         sections ? fmt::format("the axis has {}",
                                                plural(static_cast<i64>(*sections), "section"))
                                  : "several axes of the rule have sections"))
      .help("give one name to each section of one axis, such as [\"gate\", \"up\"]");
}

/// Names that a strategy gives to the sections of its axis.
std::vector<std::string> sections_of(const StrategySpec& spec) {
  if (spec.kind == StrategyKind::kStackedQkv && spec.order == layout::QkvOrder::kConcat)
    return {"q", "k", "v"};
  const bool is_stacked = spec.gate_up_order == layout::GateUpOrder::kStacked;
  if (spec.kind == StrategyKind::kGateUp && is_stacked && spec.parts == 2) return {"gate", "up"};
  return {};
}

}  // namespace

Rule decode_rule(const JsonValue& value, const std::string& position, const LayerSets& sets) {
  Rule rule;
  rule.label = position;
  rule.place = value.place();
  std::vector<Compiled> patterns;
  value.object({
      {"id", [&](const JsonValue& v) { rule.label = v.identifier(); }},
      {"match", [&](const JsonValue& v) { patterns = decode_match(v); }},
      {"regex",
       [&](const JsonValue& v) {
         patterns = {compile(v, {v.nonempty_text(), v.text()})};
       }},
      {"dims", [&](const JsonValue& v) { rule.cut = decode_dims(v); }},
      {"strategy", [&](const JsonValue& v) { rule.cut = decode_strategy(v); }},
      {"sections", [&](const JsonValue& v) { rule.sections = decode_sections(v); }},
      {"index", [&](const JsonValue& v) { rule.index = decode_index(v); }},
      {"at", [&](const JsonValue& v) { rule.at = decode_at(v); }},
      {"where", [&](const JsonValue& v) { rule.where = decode_where(v, sets); }},
      {"count", [&](const JsonValue& v) { rule.count = decode_size(v); }},
      {"dtype", [&](const JsonValue& v) { rule.dtypes = decode_dtypes(v); }},
      {"bias", [&](const JsonValue& v) { rule.bias = decode_bias(v); }},
      {"note", [](const JsonValue& v) { v.text(); }},
  });
  require_one_of(value, "match", "regex");
  require_one_of(value, "dims", "strategy");
  check_sections(value, rule);
  if (const auto* strategy = std::get_if<StrategySpec>(&rule.cut);
      strategy && rule.sections.empty())
    rule.sections = sections_of(*strategy);
  check_captures(value, "index", rule.index, patterns);
  check_captures(value, "where", rule.where, patterns);
  for (const auto& [capture, axis] : rule.index) {
    if (rule.at.contains(axis))
      throw value.error(ErrorCode::kMappingSchema,
                        fmt::format("\"index\" and \"at\" both give a number on axis '{}'", axis));
  }
  for (Compiled& compiled : patterns) rule.patterns.push_back(std::move(compiled.pattern));
  return rule;
}

}  // namespace shardtool::mapping

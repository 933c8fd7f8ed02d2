#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "lib/base/strict_json.h"
#include "lib/mapping/document/decode.h"
#include "lib/mapping/document/json_value.h"
#include "lib/model/graph/graph.h"
#include "lib/model/graph/graph_checks.h"
#include "lib/ops/decoder.h"

namespace shardtool::model {
namespace {

using mapping::decode_allowed;
using mapping::decode_layer_set;
using mapping::decode_number;
using mapping::JsonValue;
using ops::decode_dim;
using ops::decode_op;
using ops::OpContext;

/// Decodes {path: [values that config.json may have]}.
Requirements decode_requirements(const JsonValue& value) {
  Requirements requirements;
  for (const auto& [path, allowed] : value.members()) {
    requirements.emplace_back(path, decode_allowed(allowed));
  }
  return requirements;
}

constexpr int kMaxDepth = 16;

/// The text of a document, with the objects that its values refer to.
class Source {
 public:
  explicit Source(const GraphText& text)
      : json_(parse_strict_json(text.text, text.place(), ErrorCode::kMappingSyntax, kMaxDepth)),
        places_(text.text, text.place()) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  JsonValue root() const { return {json_.value, "", places_}; }

 private:
  JsonDocument json_;
  mapping::PlaceIndex places_;
};

/// Collects the documents of one family, farthest first, so that nearer ones override entries of
/// the same name.
class Decoder {
 public:
  void read(const JsonValue& root);
  Graph graph() &&;

 private:
  using Merged = std::map<std::string, JsonValue>;
  /// The parts of a stack that are decoded after its prefixes.
  struct StackText {
    Merged prefixes;
    std::optional<JsonValue> start, blocks;
  };

  static JsonValue::Field merging(std::string_view key, Merged& into) {
    return {key, [&into](const JsonValue& value) {
              for (const auto& [name, member] : value.members())
                into.insert_or_assign(name, member);
            }};
  }
  static JsonValue::Field keeping(std::string_view key, std::optional<JsonValue>& into) {
    return {key, [&into](const JsonValue& value) { into = value; }};
  }
  static JsonValue::Field text(std::string_view key, std::string& into) {
    return {key, [&into](const JsonValue& value) { into = value.nonempty_text(); }, true};
  }

  std::vector<Op> part(const JsonValue& name);
  std::vector<Op> ops_of(const std::vector<JsonValue>& parts);
  Expected expected(const JsonValue& value) const;
  Way way(const JsonValue& value);
  Alternatives alternatives(const JsonValue& value);
  std::vector<Alternatives> stretches(const JsonValue& value);
  LayerNumber layer_number(const JsonValue& value) const;
  std::vector<Block> blocks(const JsonValue& value);
  Stack stack(const JsonValue& value);
  std::vector<JsonValue::Field> fields_of(Stack& stack, StackText& text);
  void finish(Stack& stack, const StackText& text);
  void add_tower(const JsonValue& value);
  static Alternatives where_made(Alternatives ways);
  void check_used() const;

  Graph graph_;
  OpContext context_;
  Merged parts_, sizes_, numbers_, layer_sets_, layer_numbers_, prefixes_, requires_;
  std::optional<JsonValue> passed_, start_, blocks_, stacks_, tower_, end_, ignored_;
  std::set<std::string> used_parts_;
  std::string nearest_;  ///< file of the document that was read last
};

void Decoder::read(const JsonValue& root) {
  std::vector<std::string> model_types;
  nearest_ = root.place().file;
  root.document({
      {"version",
       [](const JsonValue& v) {
         if (v.integer() != 1) v.refuse("1");
       },
       true},
      {"extends",
       [](const JsonValue& v) {
         if (!v.is_array()) return static_cast<void>(v.identifier());
         for (const JsonValue& one : v.elements(2)) static_cast<void>(one.identifier());
       }},
      text("family", graph_.family),
      text("description", graph_.description),
      text("source", graph_.source),
      {"model_types",
       [&](const JsonValue& v) {
         for (const JsonValue& type : v.elements()) model_types.push_back(type.nonempty_text());
       },
       true},
      merging("requires", requires_),
      merging("prefix", prefixes_),
      merging("sizes", sizes_),
      merging("numbers", numbers_),
      merging("layer_sets", layer_sets_),
      merging("layer_numbers", layer_numbers_),
      {"config_part", [&](const JsonValue& v) { graph_.config_part = v.nonempty_text(); }},
      merging("parts", parts_),
      keeping("passed", passed_),
      keeping("start", start_),
      keeping("blocks", blocks_),
      keeping("stacks", stacks_),
      keeping("tower", tower_),
      keeping("end", end_),
      keeping("ignored", ignored_),
  });
  graph_.model_types = std::move(model_types);
}

/// Returns the ops of a named part, or the single op given instead of a name.
std::vector<Op> Decoder::part(const JsonValue& name) {
  if (name.is_object()) return {decode_op(name, context_)};
  const auto found = parts_.find(name.text());
  if (found == parts_.end()) name.refuse("an op or the name of one of the \"parts\"");
  used_parts_.insert(found->first);
  std::vector<Op> ops;
  for (const JsonValue& op : found->second.elements(1)) ops.push_back(decode_op(op, context_));
  return ops;
}

std::vector<Op> Decoder::ops_of(const std::vector<JsonValue>& parts) {
  std::vector<Op> ops;
  for (const JsonValue& one : parts) {
    for (Op& op : part(one)) ops.push_back(std::move(op));
  }
  return ops;
}

/// Decodes {"among", "cycle"}.
LayerNumber Decoder::layer_number(const JsonValue& value) const {
  LayerNumber number;
  value.object(
      {{"among",
        [&](const JsonValue& v) {
          number.among = decode_layer_set(v, context_.layer_sets, context_.numbers);
        },
        true},
       {"cycle", [&](const JsonValue& v) { number.cycle = decode_number(v, context_.numbers); }}});
  return number;
}

/// Decodes {"layers", "requires", "unequal"}; "layers" is a set of layers, or several that all have
/// the layer.
Expected Decoder::expected(const JsonValue& value) const {
  Expected found;
  const auto add = [&](const JsonValue& set) {
    found.layers.push_back(decode_layer_set(set, context_.layer_sets, context_.numbers));
  };
  value.object(
      {{"layers",
        [&](const JsonValue& v) {
          if (!v.is_array()) return add(v);
          for (const JsonValue& set : v.elements(2)) add(set);
        }},
       {"requires", [&](const JsonValue& v) { found.requires_config = decode_requirements(v); }},
       {"unequal", [&](const JsonValue& v) {
          found.unequal = ops::decode_dims(v);
          if (found.unequal.size() != 2) v.refuse("two sizes");
        }}});
  return found;
}

/// Decodes a part, or {"layers", "requires", "where_made", "expected", "parts"}. An empty list of
/// parts means no ops.
Way Decoder::way(const JsonValue& value) {
  Way way;
  if (!value.has("parts")) {
    way.ops = part(value);
    return way;
  }
  value.object(
      {{"layers",
        [&](const JsonValue& v) {
          way.layers = decode_layer_set(v, context_.layer_sets, context_.numbers);
        }},
       {"requires", [&](const JsonValue& v) { way.requires_config = decode_requirements(v); }},
       {"where_made", [&](const JsonValue& v) { way.where_made = v.boolean(); }},
       {"expected", [&](const JsonValue& v) { way.expected = expected(v); }},
       {"parts", [&](const JsonValue& v) { way.ops = ops_of(v.elements()); }, true}});
  return way;
}

Alternatives Decoder::alternatives(const JsonValue& value) {
  if (!value.is_array()) return {way(value)};
  Alternatives ways;
  for (const JsonValue& one : value.elements(2)) ways.push_back(way(one));
  return ways;
}

std::vector<Alternatives> Decoder::stretches(const JsonValue& value) {
  std::vector<Alternatives> found;
  for (const JsonValue& one : value.elements(1)) found.push_back(alternatives(one));
  return found;
}

std::vector<Block> Decoder::blocks(const JsonValue& value) {
  std::vector<Block> blocks;
  for (const JsonValue& one : value.elements(1)) {
    Block& block = blocks.emplace_back();
    one.object({text("name", block.name),
                {"expected", [&](const JsonValue& v) { block.expected = expected(v); }},
                {"ops", [&](const JsonValue& v) { block.stretches = stretches(v); }, true}});
  }
  return blocks;
}

std::vector<JsonValue::Field> Decoder::fields_of(Stack& stack, StackText& text) {
  return {Decoder::text("name", stack.name),
          merging("prefix", text.prefixes),
          {"layers", [&](const JsonValue& v) { stack.layers = decode_dim(v); }, true},
          {"start", [&](const JsonValue& v) { text.start = v; }, true},
          {"blocks", [&](const JsonValue& v) { text.blocks = v; }, true}};
}

/// Decodes the stack's ops with its own prefixes, then those of the graph.
void Decoder::finish(Stack& stack, const StackText& text) {
  for (const auto& [name, prefix] : text.prefixes) context_.prefixes[name] = prefix.nonempty_text();
  stack.start = stretches(*text.start);
  stack.blocks = blocks(*text.blocks);
}

Stack Decoder::stack(const JsonValue& value) {
  Stack stack;
  StackText text;
  auto fields = fields_of(stack, text);
  fields.push_back({"of_prompt", [&](const JsonValue& v) { stack.of_prompt = v.boolean(); }});
  value.object(fields);
  const auto of_graph = context_.prefixes;
  finish(stack, text);
  context_.prefixes = of_graph;
  return stack;
}

/// Adds a tower: a stack before all others with its own end, and ops at the start of the next stack
/// that read its result.
void Decoder::add_tower(const JsonValue& value) {
  Stack tower;
  tower.is_vision_encoder = true;
  StackText text;
  std::optional<JsonValue> end, insert;
  auto fields = fields_of(tower, text);
  fields.push_back({"end", [&](const JsonValue& v) { end = v; }, true});
  fields.push_back({"insert", [&](const JsonValue& v) { insert = v; }, true});
  value.object(fields);
  const auto of_graph = context_.prefixes;
  finish(tower, text);
  tower.end = Block{tower.name + " end", stretches(*end)};
  tower.name += " start";
  for (Alternatives& ways : stretches(*insert)) {
    graph_.stacks.front().start.push_back(where_made(std::move(ways)));
  }
  context_.prefixes = of_graph;
  graph_.stacks.insert(graph_.stacks.begin(), std::move(tower));
}

/// Makes the ways conditional on their inputs, and adds an empty way for models without these
/// inputs.
Alternatives Decoder::where_made(Alternatives ways) {
  for (Way& way : ways) way.where_made = true;
  ways.emplace_back();
  return ways;
}

std::vector<std::string> texts_of(const std::optional<JsonValue>& list) {
  std::vector<std::string> texts;
  if (!list) return texts;
  for (const JsonValue& text : list->elements()) texts.push_back(text.nonempty_text());
  return texts;
}

/// Refuses an entry of the nearest document that nothing uses: its name is usually misspelt, and
/// the inherited entry would be used in silence.
void Decoder::check_used() const {
  refuse_unused("part", parts_, used_parts_, nearest_);
  std::set<std::string> words = {"layers", "vocab"};
  for (const auto* value : {&start_, &blocks_, &stacks_, &tower_, &end_, &ignored_}) {
    if (*value) add_words(**value, words);
  }
  for (const std::string& part : used_parts_) add_words(parts_.at(part), words);
  for (const Merged* entries : {&layer_sets_, &layer_numbers_, &prefixes_}) {
    for (const auto& [name, value] : *entries) add_words(value, words);
  }
  for (const auto& [name, size] : graph_.sizes) mapping::add_axes(size, words);
  refuse_unused("size", sizes_, words, nearest_);
  refuse_unused("number", numbers_, words, nearest_);
  refuse_unused("layer set", layer_sets_, words, nearest_);
  refuse_unused("layer number", layer_numbers_, words, nearest_);
  refuse_unused("prefix", prefixes_, words, nearest_);
}

Graph Decoder::graph() && {
  if (!(start_ && blocks_) == !stacks_ || !end_) {
    throw Error(ErrorCode::kMappingSchema,
                fmt::format("the graph '{}' has not \"start\" and \"blocks\", or \"stacks\", and "
                            "\"end\"",
                            graph_.family));
  }
  for (const auto& [name, value] : sizes_) graph_.sizes.emplace(name, mapping::decode_size(value));
  for (const auto& [name, value] : prefixes_) context_.prefixes[name] = value.nonempty_text();
  for (const auto& [name, value] : numbers_) context_.numbers[name] = decode_number(value, {});
  for (const auto& [name, value] : layer_sets_) {
    context_.layer_sets[name] = decode_layer_set(value, {}, context_.numbers);
  }
  for (const auto& [name, value] : layer_numbers_) {
    graph_.layer_numbers[name] = layer_number(value);
  }
  for (const auto& [path, value] : requires_) {
    graph_.requires_config.emplace_back(path, decode_allowed(value));
  }
  if (stacks_) {
    for (const JsonValue& one : stacks_->elements(1)) graph_.stacks.push_back(stack(one));
  } else {
    Stack& only = graph_.stacks.emplace_back();
    only.layers = mapping::parse_dim("layers");
    only.start = stretches(*start_);
    only.blocks = blocks(*blocks_);
  }
  graph_.passed = texts_of(passed_);
  if (tower_) add_tower(*tower_);
  graph_.end = stretches(*end_);
  graph_.ignored = texts_of(ignored_);
  check_values(graph_);
  check_used();
  return std::move(graph_);
}

}  // namespace

Graph decode_graph(const std::vector<GraphText>& texts) {
  std::vector<std::unique_ptr<Source>> sources;
  Decoder decoder;
  for (auto text = texts.rbegin(); text != texts.rend(); ++text) {
    sources.push_back(std::make_unique<Source>(*text));
    decoder.read(sources.back()->root());
  }
  return std::move(decoder).graph();
}

}  // namespace shardtool::model

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/mapping/document/size_expression.h"
#include "lib/model/graph/ops.h"

/// A model as data: what a forward pass computes, written once per family in graphs/*.json. Cost
/// reports price it; nothing here knows a model's name.
namespace shardtool::model {

/// What config.json must say: the values that are allowed at a path, as JSON text, and numbers as
/// mapping::allowed_number writes them. Where it says nothing, null or the word "absent" is
/// allowed.
using Requirements = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// One way to write a stretch of a layer.
struct Way {
  std::optional<LayerSet> layers;  ///< where it is one; nothing: everywhere
  Requirements requires_config;
  bool where_made = false;  ///< only where what it reads was made: by a tower that is there
  std::vector<Op> ops;
};
/// The first of which that its layer and config.json allow and whose required tensors are there
/// counts.
using Alternatives = std::vector<Way>;

struct Block {
  std::string name;
  std::vector<Alternatives> stretches;  ///< one after the other
};

/// A number that a layer has beside its own: how many layers of a set are before it, or with a
/// cycle the layer of that set whose place there is that number mod `cycle`. Layers that share
/// weights read those of one of them by it.
struct LayerNumber {
  LayerSet among;
  std::optional<Number> cycle;
};

/// Layers after each other, and what makes the first one's "x".
struct Stack {
  std::string name;  ///< of what stands before the layers; empty: "start"
  Dim layers;
  bool of_prompt = false;  ///< an encoder, which reads the prompt alone
  bool beside = false;     ///< a tower, of images, which a prompt need not have: it is there where
                           ///< the tensors of its start are, and is not priced
  std::vector<Alternatives> start;
  std::vector<Block> blocks;  ///< of a layer: the first whose tensors are there counts
  std::optional<Block> end;   ///< of a tower: what makes of its last "x" what words meet
};

/// Values go from one layer to the next by their names: "x", and those of `passed`, which any layer
/// may read that comes after one that made them.
///
/// G1 a stack's start makes "x"; a block reads "x" and makes it again; `end` reads it
/// G2 every value that an op reads was made before it in its block, or is one that passes
struct Graph {
  std::string family;
  std::string description;
  std::string source;  ///< the code that it was read from
  std::vector<std::string> model_types;
  Requirements requires_config;
  /// Where in config.json all that the graph reads is, where it has such a part: "text_config".
  std::string config_part;
  std::map<std::string, mapping::SizeExpression> sizes;
  std::map<std::string, LayerNumber> layer_numbers;  ///< that names of tensors may have
  std::vector<std::string> passed;                   ///< beside "x"
  std::vector<Stack> stacks;
  std::vector<Alternatives> end;
  std::vector<std::string> ignored;  ///< globs of tensors that no op reads
};

/// Decodes one family with the documents that it extends, nearest first. Throws kMappingSchema and
/// kMappingSyntax with places, and kMappingSchema where G1 or G2 does not hold.
struct GraphText {
  std::string_view name;
  std::string_view text;
  std::string_view file = {};  ///< where its errors are; empty: in "graph:" and the name

  std::string place() const {
    return file.empty() ? "graph:" + std::string(name) : std::string(file);
  }
};
Graph decode_graph(const std::vector<GraphText>& texts);

}  // namespace shardtool::model

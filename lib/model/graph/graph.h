#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/mapping/document/size_expression.h"
#include "lib/ops/op.h"

/// A model as data: what a forward pass computes, written once per family in graphs/*.json. Cost
/// reports price it; nothing here knows a model's name.
namespace shardtool::model {

using ops::Attention;
using ops::Convolve;
using ops::Decay;
using ops::Dim;
using ops::Embed;
using ops::Experts;
using ops::LayerSet;
using ops::Linear;
using ops::Norm;
using ops::Number;
using ops::Op;
using ops::Recurrence;
using ops::Router;
using ops::Split;
using ops::WeightRef;
using ops::Window;
using ops::Word;

/// The values that config.json may have at a path, as JSON text, numbers as mapping::allowed_number
/// writes them. null or the word "absent" allows a config without the path.
using Requirements = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// One variant of a stretch, a part of a layer.
struct Way {
  std::optional<LayerSet> layers;  ///< unset: all layers
  Requirements requires_config;
  bool where_made = false;  ///< only if its inputs were made, by a tower that the checkpoint has
  std::vector<Op> ops;
};
/// Variants of a stretch. The first one that its layer and config.json allow and whose required
/// tensors the checkpoint has is used.
using Alternatives = std::vector<Way>;

struct Block {
  std::string name;
  std::vector<Alternatives> stretches;  ///< one after the other
};

/// A second number of a layer: the count of layers of a set before it, or with a cycle the layer of
/// that set at the index (count mod `cycle`). Layers that share weights name them by it.
struct LayerNumber {
  LayerSet among;
  std::optional<Number> cycle;
};

/// Consecutive layers, and the ops that make the first layer's "x".
struct Stack {
  std::string name;  ///< of the block before the layers; empty: "start"
  Dim layers;
  bool of_prompt = false;  ///< an encoder, which reads the prompt alone
  bool beside = false;     ///< a tower of images, which prompts need not have: used if the tensors
                           ///< of its start exist, and not priced
  std::vector<Alternatives> start;
  std::vector<Block> blocks;  ///< a layer takes the first whose tensors exist
  std::optional<Block> end;   ///< of a tower: makes the features that meet words
};

/// Values go from one layer to the next by their names: "x", and those of `passed`, which any later
/// layer may read.
///
/// G1 a stack's start makes "x"; a block reads "x" and makes it again; `end` reads it
/// G2 every value that an op reads was made before it in its block, or is one that passes
struct Graph {
  std::string family;
  std::string description;
  std::string source;  ///< the code that it was read from
  std::vector<std::string> model_types;
  Requirements requires_config;
  /// The part of config.json that the graph reads, if it has one: "text_config".
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
  std::string_view file = {};  ///< for errors; empty: "graph:" and the name

  std::string place() const {
    return file.empty() ? "graph:" + std::string(name) : std::string(file);
  }
};
Graph decode_graph(const std::vector<GraphText>& texts);

}  // namespace shardtool::model

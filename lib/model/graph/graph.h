#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/mapping/document/size_expression.h"
#include "lib/ops/op.h"

/// A model's forward pass as data, one document per family in lib/family. Cost reports and proofs
/// read it; no code depends on a model's name.
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

/// The allowed values in config.json by path, as JSON text with numbers written by
/// mapping::allowed_number. null or the word "absent" allows a config without the path.
using Requirements = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// Models and layers that are expected to have the weights of a variant or a block: the layers in
/// all of the sets, if config.json meets the requirements and the two sizes differ. Read only where
/// config.json stands alone (config_tensors.h); with a checkpoint at hand its tensors decide.
struct Expected {
  std::vector<LayerSet> layers;
  Requirements requires_config;
  std::vector<Dim> unequal;  ///< two or none
};

/// One variant of a stretch; a stretch is a part of a layer.
struct Way {
  std::optional<LayerSet> layers;  ///< unset: in all layers
  Requirements requires_config;
  /// Only if its inputs exist: the checkpoint has the vision encoder that makes them.
  bool where_made = false;
  std::vector<Op> ops;
  std::optional<Expected> expected = {};
};
/// Variants of a stretch. The first one is used that the layer and config.json allow and whose
/// required tensors exist; a layer that is in the `layers` of one uses it whatever exists.
using Alternatives = std::vector<Way>;

struct Block {
  std::string name;
  std::vector<Alternatives> stretches;  ///< in order
  std::optional<Expected> expected = {};
};

/// A second number of a layer, for names of tensors that several layers share: the number of layers
/// of a set before it. With a cycle, the layer of the set at index (count mod `cycle`).
struct LayerNumber {
  LayerSet among;
  std::optional<Number> cycle;
};

/// Consecutive layers, and the ops that make the first layer's "x".
struct Stack {
  std::string name;  ///< name of the block before the layers; empty: "start"
  Dim layers;
  bool of_prompt = false;  ///< an encoder, which reads only the prompt
  /// A vision encoder ("tower" in a graph): a prompt may lack images. Used if the tensors of its
  /// start exist; not priced.
  bool is_vision_encoder = false;
  std::vector<Alternatives> start;
  std::vector<Block> blocks;  ///< a layer uses the first block whose tensors exist
  /// Only of a vision encoder: makes the features that the next stack reads.
  std::optional<Block> end;
};

/// Values pass from layer to layer by name: "x", and those of `passed`, which any later layer may
/// read.
///
/// G1 a stack's start makes "x"; a block reads "x" and makes it again; `end` reads it
/// G2 every value that an op reads is made before it in its block, or passes from another layer
struct Graph {
  std::string family;
  std::string description;
  std::string source;  ///< the code from which the graph was written
  std::vector<std::string> model_types;
  Requirements requires_config;
  /// The part of config.json that the graph reads, if present: "text_config".
  std::string config_part;
  std::map<std::string, mapping::SizeExpression> sizes;
  std::map<std::string, LayerNumber> layer_numbers;  ///< for placeholders in names of tensors
  std::vector<std::string> passed;                   ///< beside "x"
  std::vector<Stack> stacks;
  std::vector<Alternatives> end;
  std::vector<std::string> ignored;  ///< globs of tensors that no op reads
};

/// The text of one document.
struct GraphText {
  std::string_view name;
  std::string_view text;
  std::string_view file = {};  ///< for errors; empty: "graph:" and the name

  std::string place() const {
    return file.empty() ? "graph:" + std::string(name) : std::string(file);
  }
};
/// Decodes one family: its document, then those that it extends, the nearest first. Throws
/// kMappingSchema and kMappingSyntax with places, and kMappingSchema if G1 or G2 does not hold.
Graph decode_graph(const std::vector<GraphText>& texts);

}  // namespace shardtool::model

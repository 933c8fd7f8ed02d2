#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/base/error.h"
#include "lib/layout/layout.h"
#include "lib/layout/strategy.h"
#include "lib/mapping/document/dims.h"
#include "lib/mapping/document/glob.h"
#include "lib/mapping/document/layer_set.h"
#include "lib/mapping/document/size_expression.h"
#include "lib/mesh/axis_ref.h"

namespace shardtool::mapping {

/// The mapping file as data: what it says, with the place of everything an error may point at.
/// Nothing here is resolved; schema/mapping-v1.json describes the same language.

/// One entry of "mesh".
struct MeshAxisSpec {
  std::string axis;
  std::optional<i64> size;  ///< nothing: "auto"
  Place place;
};

/// null, "tp", "tp:(1)4" or a list, major to minor.
struct MeshRef {
  mesh::Over over;
  Place place;
};

/// What happens where units do not divide over the parts.
enum class Uneven { kBalanced, kChunk, kPad, kError };

/// Which part owns which unit.
struct OwnersSpec {
  enum class Kind { kContiguous, kRoundRobin, kLists };
  Kind kind = Kind::kContiguous;
  std::vector<std::vector<i64>> lists;  ///< of kLists: part k owns lists[k]
};

/// One entry of "axes". A field that is absent is inherited from the next document.
struct AxisSpec {
  std::optional<MeshRef> mesh;
  std::optional<SizeExpression> size;
  std::optional<Uneven> uneven;
  std::optional<i64> pad_to;
  std::optional<layout::Fill> padding;  ///< what the indices hold that "pad" adds
  std::optional<layout::SmallPolicy> small;
  std::optional<std::string> groups;  ///< the axis that this one is grouped under
  std::optional<OwnersSpec> owners;
  Place place;
};

/// One section of a segmented axis: `units` runs of `unit` elements.
struct SegmentSpec {
  SizeExpression units;
  std::optional<SizeExpression> unit;
};

/// A named strategy with its arguments; which of them a kind takes is in the schema.
struct StrategySpec {
  layout::StrategyKind kind = layout::StrategyKind::kReplicate;
  std::optional<MeshRef> over;
  std::optional<i64> axis;
  layout::Kernel kernel = layout::Kernel::kOutIn;
  std::optional<SizeExpression> num_heads;
  std::optional<SizeExpression> num_kv_heads;
  std::optional<SizeExpression> head_dim;
  layout::QkvOrder order = layout::QkvOrder::kConcat;
  layout::SmallPolicy small = layout::SmallPolicy::kError;
  layout::GateUpOrder gate_up_order = layout::GateUpOrder::kStacked;
  i64 parts = 2;
  std::vector<SegmentSpec> segments;
  Uneven uneven = Uneven::kBalanced;
  i64 pad_to = 1;
};

/// Whether a pattern matches names alike that differ in numbers only (Glob::takes_any_number).
enum class NumberUse { kAnyAlike, kRead };

/// A pattern of a rule: a glob in its RE2 form, or a regex as written.
struct Pattern {
  std::string text;   ///< as written
  std::string regex;  ///< RE2, of the whole name
  NumberUse numbers = NumberUse::kRead;
};

struct Rule {
  std::string label;  ///< the id, or "rules/3"
  std::vector<Pattern> patterns;
  std::variant<std::vector<Dim>, StrategySpec> cut;
  std::map<std::string, std::string> index;  ///< captured number -> logical axis
  std::map<std::string, i64> at;             ///< logical axis -> number, negative from its end
  std::map<std::string, LayerSet> where;     ///< captured number -> the layers that it holds in
  std::optional<SizeExpression> count;
  std::vector<Dtype> dtypes;        ///< empty: any
  std::optional<std::string> bias;  ///< "after_reduction" or "" (plain); nothing: by the strategy
  Place place;
};

enum class CompanionKind { kBlockScale, kPerRow, kPerColumn, kPerTensor, kSameDims, kMember };
std::string_view to_string(CompanionKind kind);

/// One axis of a member of a bundle, in terms of the tensor that leads it: either it follows an
/// axis of the leader, or it is whole on every device.
struct MemberAxisSpec {
  std::optional<size_t> axis;         ///< of the leader
  std::optional<SizeExpression> per;  ///< the leader's indices in one stored index; nothing: 1
  std::optional<i64> size;            ///< the extent of an axis that follows none; nothing: any
};

/// What the values of a companion are, beside plain data that is cut.
enum class MemberValues {
  kPlain,
  kGroupIndices,  ///< numbers of groups along the axis that it follows: each device's begin at 0
  kLocalShape,    ///< the shape of the weight: each device has its own
};

/// Tensors that follow another tensor's cut.
struct CompanionSpec {
  Glob of;
  Glob is;  ///< the same wildcards in the same order
  CompanionKind kind = CompanionKind::kPerTensor;
  std::vector<i64> block = {};    ///< of a block scale, when given as numbers
  std::string block_config = {};  ///< the config path otherwise
  /// Of a member: the forms that its shape may have; the first that fits counts.
  std::vector<std::vector<MemberAxisSpec>> forms = {};
  bool leads = false;              ///< a member that stands for its leader where that is not stored
  std::vector<Dtype> dtypes = {};  ///< empty: any
  MemberValues values = MemberValues::kPlain;
  std::optional<SizeExpression> group = {};  ///< of kGroupIndices: indices of the axis in one group
  Place place = {};
};

/// One entry of "config" in "when": the value at a path is one of those listed.
struct ConfigCondition {
  std::string path;
  std::vector<std::string> values;  ///< as JSON text; "null" stands for an absent key, too
};

/// "when": which models a document is for.
struct WhenSpec {
  std::vector<std::string> architectures;
  std::vector<std::string> model_types;
  std::vector<std::string> tensors_present;
  std::vector<ConfigCondition> config;  ///< all must hold
};

/// What happens where the cut of a weight falls inside a block of one of its companions.
enum class Straddle {
  kError,           ///< refuse
  kUnevenAligned,   ///< cut the axis in whole blocks, unevenly where they do not divide
  kPad,             ///< round the axis up until every part is whole blocks, zeros at its end
  kReplicateScale,  ///< every device that has a part of a block gets its scale
  kRefine,          ///< blocks of the greatest common divisor, each with a copy of its scale
};

/// Which devices add the bias of a row-parallel layer, so that the sum over the devices has it
/// once.
enum class ReducedBias {
  kReplicate,  ///< all have it, and add it after the reduction
  kFirst,      ///< only the first device along the mesh axis has it
  kDivide,     ///< each has it divided by the number of devices
};

enum class UnknownPolicy { kError, kWarn, kReplicate };
enum class UnusedPolicy { kError, kWarn, kIgnore };

struct Document {
  std::string name;  ///< "mapping.json" or "preset:llama"
  bool is_preset = false;
  std::string description;
  std::vector<std::pair<std::string, Place>> extends;
  WhenSpec when;
  std::vector<std::string> quantization;  ///< the tags (quantization.h) whose tensors it knows
  std::string refuse;                     ///< why these are not supported, or empty
  std::vector<MeshAxisSpec> mesh;         ///< empty: not given
  std::map<std::string, AxisSpec> axes;
  std::map<std::string, std::map<std::string, MeshRef>> layouts;
  std::vector<Rule> rules;
  std::vector<Rule> overrides;
  std::vector<CompanionSpec> companions;
  std::vector<std::vector<std::string>> tied;
  std::vector<Glob> drop;
  std::optional<Straddle> straddle;
  std::optional<ReducedBias> reduced_bias;
  std::optional<UnknownPolicy> unknown;
  UnusedPolicy unused_rule = UnusedPolicy::kError;
};

/// Decodes and validates one document by itself. Throws kMappingSyntax for text that is no strict
/// JSON; kMappingSchema and kUnknownName with place and near misses for everything else.
Document decode_document(std::string_view text, const std::string& name);

/// What a list of documents needs of each: what it is for.
struct DocumentHead {
  std::string description;
  WhenSpec when;
  std::vector<std::string> quantization;
};

/// The head of a document that decode_document accepts; errors have no line. An order of magnitude
/// quicker: rules are not compiled, places are not looked up.
DocumentHead decode_head(std::string_view text, const std::string& name);

}  // namespace shardtool::mapping

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

/// A mapping file as data, with the place of every value that an error may point at. No name is
/// resolved here. schema/mapping-v1.json describes the same language.

/// One entry of "mesh".
struct MeshAxisSpec {
  std::string axis;
  std::optional<i64> size;   ///< nullopt: "auto"
  bool is_gathered = false;  ///< role "fsdp": devices gather weights along it to compute
  Place place;
};

/// Ranks of the mesh's cells in row-major order.
struct DeviceOrderSpec {
  std::vector<i64> ranks;  ///< empty if they are 0, 1, 2, ...
  Place place;
};

/// null, "tp", "tp:(1)4" or a list, major to minor.
struct MeshRef {
  mesh::Over over;
  Place place;
};

/// Treatment of units that do not divide evenly over the parts.
enum class Uneven { kBalanced, kMiddle, kChunk, kPad, kError };

/// Assignment of units to parts. In rounds, consecutive runs of units go to parts 0, 1, ... and
/// again to parts 0, 1, ...; round robin has as many rounds as it takes for runs of one unit.
struct OwnersSpec {
  enum class Kind { kContiguous, kRoundRobin, kRounds, kLists };
  Kind kind = Kind::kContiguous;
  i64 rounds = 1;                       ///< only of kRounds
  std::vector<std::vector<i64>> lists;  ///< only of kLists: part k owns lists[k]
};

/// One entry of "axes". An absent field is inherited from the next document.
struct AxisSpec {
  std::optional<MeshRef> mesh;
  std::optional<SizeExpression> size;
  std::optional<Uneven> uneven;
  std::optional<i64> pad_to;
  std::optional<layout::Fill> padding;  ///< value of the indices that "pad" adds
  std::optional<layout::SmallPolicy> small;
  std::optional<std::string> groups;  ///< the axis under which this one is grouped
  std::optional<OwnersSpec> owners;
  std::optional<bool> alone;  ///< other axes of a tensor are not cut along its mesh axes
  Place place;
};

/// One section of a segmented axis: `units` runs of `unit` elements.
struct SegmentSpec {
  SizeExpression units;
  std::optional<SizeExpression> unit;
};

/// A named strategy with its arguments. The schema lists the arguments of each kind.
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

/// kAnyAlike: names that differ only in numbers all match or all fail to match
/// (Glob::takes_any_number). kRead: the pattern may depend on the numbers.
enum class NumberUse { kAnyAlike, kRead };

/// A pattern of a rule: a glob in its RE2 form, or a regex as written.
struct Pattern {
  std::string text;   ///< as written
  std::string regex;  ///< RE2, of the whole name
  NumberUse numbers = NumberUse::kRead;
};

/// The pattern of a glob.
Pattern pattern_of(const Glob& glob);

/// Placement of a bias: the first devices along tp have it, the others zeros, and all add theirs.
inline constexpr std::string_view kFirstAndZeros = "first_and_zeros";

/// "map.json:7", or the file alone where the line is not known.
std::string line_of(const Place& place);
/// "map.json:7:5 /rules/0", without line and column where they are not known.
std::string describe(const Place& place);

struct Rule {
  std::string label;  ///< the id, or "rules/3"
  std::vector<Pattern> patterns;
  std::variant<std::vector<Dim>, StrategySpec> cut;
  /// Names of the sections of the axis that has several, "q", "k", "v"; empty: not given.
  std::vector<std::string> sections;
  std::map<std::string, std::string> index;  ///< captured number -> logical axis
  /// Logical axis -> numbers, negative from its end: the tensor is where any of them is.
  std::map<std::string, std::vector<i64>> at;
  std::map<std::string, LayerSet> where;  ///< captured number -> the layers in which the rule holds
  std::optional<SizeExpression> count;
  std::vector<Dtype> dtypes;  ///< empty: all dtypes
  /// "after_reduction", kFirstAndZeros or "" (plain); nullopt: chosen by the strategy.
  std::optional<std::string> bias;
  Place place;
};

enum class CompanionKind { kBlockScale, kPerRow, kPerColumn, kPerTensor, kSameDims, kMember };
std::string_view to_string(CompanionKind kind);

/// One axis of a member of a bundle. It either follows an axis of the tensor that leads the bundle,
/// or every device has all of it.
struct MemberAxisSpec {
  std::optional<size_t> axis;  ///< index of the leader's axis
  /// Number of the leader's indices per stored index; nullopt: 1.
  std::optional<SizeExpression> per;
  std::optional<i64> size;  ///< extent of an axis that follows none; nullopt: any
  bool is_packed = false;   ///< a stored index holds a value of each of the leader's indices
};

/// Meaning of a companion's values, if they are not plain data.
enum class MemberValues {
  kPlain,
  kGroupIndices,  ///< group numbers along the followed axis; on each device they begin at 0
  kLocalShape,    ///< the weight's shape; each device stores that of its own shard
};

/// Tensors that are cut like another tensor.
struct CompanionSpec {
  Glob of;
  Glob is;  ///< the same wildcards in the same order
  CompanionKind kind = CompanionKind::kPerTensor;
  std::vector<i64> block = {};    ///< block of a block scale, if given as numbers
  std::string block_config = {};  ///< config path of the block otherwise
  /// The forms that a member's shape may have; the first that fits counts.
  std::vector<std::vector<MemberAxisSpec>> forms = {};
  bool leads = false;              ///< a member that replaces its leader if that is not stored
  std::vector<Dtype> dtypes = {};  ///< empty: all dtypes
  MemberValues values = MemberValues::kPlain;
  std::optional<SizeExpression> group = {};  ///< only of kGroupIndices: axis indices per group
  Place place = {};
};

/// One entry of "config" in "when": requires one of the listed values at a path.
struct ConfigCondition {
  std::string path;
  std::vector<std::string> values;  ///< as JSON text; "null" also matches an absent key
};

/// "when": the models that a document is for.
struct WhenSpec {
  std::vector<std::string> architectures;
  std::vector<std::string> model_types;
  std::vector<std::string> tensors_present;
  std::vector<ConfigCondition> config;  ///< all must hold
};

/// One entry of "drop": tensors that are left out.
struct DropRule {
  Glob match{""};
  std::map<std::string, LayerSet> where;  ///< number of the glob -> the layers; empty: all
};

/// Tensor that the checkpoint lacks and the output gets: every element has one value.
struct StoredConstant {
  Dtype dtype = Dtype::kF32;
  Shape shape;
  double value = 0;
};

/// One entry of "store": the form in which output files hold some tensors. Without a constant, a
/// stored tensor concatenates a device's shards of the tensors of "of" along axis 0. With "stack"
/// there is one such concatenation per number, and a new first axis counts them.
struct StoreRule {
  Glob name{""};
  std::vector<Glob> of;
  std::string stack;  ///< number in the globs of "of", e.g. "expert"; empty: none
  /// Logical axis -> number, negative from its end: the rule takes the shards on the devices where
  /// the number is, and leaves the others to later rules.
  std::map<std::string, i64> at;
  /// Axis with the rows of one unit, such as head_dim: each unit is stored with its first and
  /// second half alternating (index/interleave.h); empty: in order.
  std::string interleave;
  /// Number of last axes that are flattened into one; 0: none. With 1, a scalar gets an axis of
  /// size 1.
  size_t join = 0;
  /// A second tensor, which has the same texts for the wildcards as the tensor of "of". The two
  /// must be equal, and this one is not stored.
  std::optional<Glob> same;
  /// The tensor is this constant, on the devices that have the tensor of "of".
  std::optional<StoredConstant> constant;
  std::vector<ConfigCondition> config;  ///< conditions on config.json; all must hold
  Place place;
};

/// One entry of "read": takes a stored tensor apart that holds several of the model's tensors, or
/// one in another order or with padding. "store" is the way back.
///
///     shape of `name`    [stacked, ..., axis, ...]
///     along `axis`       |= group 0: part 0, part 1 =|= group 1: part 0, part 1 =| ...
///     tensors of `of`    one per part and index of the stacked axes
struct ReadRule {
  Glob name{""};
  std::vector<Glob> of;  ///< the first wildcards of `name`, and the numbers in `stacked`
  std::vector<std::string> stacked;      ///< numbers that the leading axes count, outermost first
  size_t axis = 0;                       ///< axis of the parts, counted after the stacked ones
  std::vector<SizeExpression> shares;    ///< relative size of each part; empty: equal parts
  std::optional<SizeExpression> groups;  ///< number of groups; nullopt: one
  std::optional<SizeExpression> size;  ///< of `axis` without padding at its end; only with one part
  /// Number of heads. In each of them the indices of its two halves alternate. Only with one part.
  std::optional<SizeExpression> interleaved;
  Place place;
};

/// Treatment of a weight whose cut falls inside a block of one of its companions.
enum class Straddle {
  kError,           ///< refuse
  kUnevenAligned,   ///< cut the axis in whole blocks, unevenly if they do not divide
  kPad,             ///< round the axis up with zeros until every part is whole blocks
  kReplicateScale,  ///< copy a block's scale to every device that has a part of the block
  kRefine,  ///< split into blocks of the greatest common divisor, each with a copy of its scale
};

/// Placement of the bias of a row-parallel layer. The devices' results are summed, and the sum must
/// contain the bias once.
enum class ReducedBias {
  kReplicate,  ///< all devices store it, and add it after the reduction
  kFirst,      ///< only the first device along the mesh axis stores it
  kDivide,     ///< each device stores it divided by the number of devices
};

enum class UnknownPolicy { kError, kWarn, kReplicate };
enum class UnusedPolicy { kError, kWarn, kIgnore };

struct Document {
  std::string name;  ///< "mapping.json" or "preset:llama"
  bool is_preset = false;
  /// The mesh may lack the mesh axes that this document names: they have size 1 then. False for a
  /// user's own text, in which such a name is probably misspelt.
  bool may_lack_axes = false;
  std::string description;
  std::vector<std::pair<std::string, Place>> extends;
  WhenSpec when;
  /// Tags (quantization.h) of the families whose tensors this document cuts.
  std::vector<std::string> quantization;
  std::string refuse;              ///< why these models are not supported; empty if they are
  std::vector<MeshAxisSpec> mesh;  ///< empty if absent
  DeviceOrderSpec device_order;
  std::map<std::string, AxisSpec> axes;
  std::map<std::string, std::map<std::string, MeshRef>> layouts;
  std::vector<Rule> rules;
  std::vector<Rule> overrides;
  std::vector<CompanionSpec> companions;
  std::vector<std::vector<std::string>> tied;
  std::vector<DropRule> drop;
  std::vector<StoreRule> store;
  std::vector<ReadRule> read;
  /// "unstored": the names that tensors may keep; unset: any; none: "error".
  std::optional<std::vector<Glob>> kept_names;
  std::optional<Straddle> straddle;
  std::optional<ReducedBias> reduced_bias;
  std::optional<UnknownPolicy> unknown;
  bool replicates_unknown_axes = false;  ///< "default": "replicate"
  UnusedPolicy unused_rule = UnusedPolicy::kError;
};

/// Decodes and validates one document by itself. Throws kMappingSyntax if the text is not strict
/// JSON. Otherwise throws kMappingSchema and kUnknownName with the place and similar names. Without
/// `has_lines` places have pointers only (DocumentText::has_lines).
Document decode_document(std::string_view text, const std::string& name, bool has_lines = true);

/// The part of a document that says which models it is for.
struct DocumentHead {
  std::string description;
  WhenSpec when;
  std::vector<std::string> quantization;
};

/// Decodes the head of a document that decode_document accepts. Its errors have no line. About ten
/// times faster than decode_document: it compiles no rules and finds no places.
DocumentHead decode_head(std::string_view text, const std::string& name);

}  // namespace shardtool::mapping

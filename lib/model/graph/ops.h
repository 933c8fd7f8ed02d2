#pragma once

#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/ops/norm.h"
#include "kernels/ops/recur.h"
#include "kernels/ops/router.h"
#include "lib/layout/strategy.h"
#include "lib/mapping/document/dims.h"
#include "lib/mapping/document/layer_set.h"

/// What a forward pass is made of: ops, with the sizes, numbers and stored tensors that they need.
namespace shardtool::model {

using mapping::Dim;
using mapping::LayerSet;
using mapping::Number;

/// A word of config.json with what counts where the config does not say, such as the name of an
/// activation.
struct Word {
  std::string config;
  std::string value;
};

/// A stored tensor that an op reads. The first of the names that the checkpoint has counts; a name
/// may leave choices in braces, and has <layer>, <expert> or <head>, and the graph's numbers of
/// layers, where those numbers stand.
struct WeightRef {
  std::vector<std::string> names;
  bool optional = false;
  std::vector<Dim> shape;    ///< of the stored tensor; empty: one number, whatever its shape
  std::optional<Dim> heads;  ///< one tensor for each <head> below it; nothing: one tensor
};

/// What enters beside tokens: `size` numbers of every position, such as sound.
struct Given {
  Dim size;
};
/// Sines, then cosines, of the position by size / 2 frequencies, base^(-i / (size / 2)), or so
/// spaced that the last one is 1 / base.
struct Sinusoids {
  Dim size;
  Number base{{}, 10000};
  Number offset;  ///< the angle of position 0 is so many steps
  bool reaches_base = false;
};
/// A convolution of all features, W [rows, columns, taps], along frames, of which a position has
/// `frames` one after the other: y[o] = b + the sum over taps k of W_k x[o * stride + k - (taps -
/// 1) / 2], where the sequence has that frame. Its result has frames / stride of them to a
/// position.
struct ConvolveFrames {
  Dim rows, columns, taps, frames, stride;
};
/// y = x W^T + b, W [rows, columns] as nn.Linear stores it, or [columns, rows] (kInOut). The
/// columns may be several stored axes, as those of a convolution are whose stride is its kernel:
/// features are then in the order of these axes. In groups each group's rows read its features
/// alone.
struct Linear {
  Dim rows, columns;
  layout::Kernel kernel = layout::Kernel::kOutIn;
  std::optional<Dim> groups;  ///< that features and rows are dealt out to; columns are of one
};
/// How the patches of an image, which are positions, lie in it: in rows of a grid, or square after
/// square of `count` patches. How wide the grid is follows from how many patches there are
/// (engine::PatchGrid).
struct Patches {
  enum class Order { kRows, kSquares };
  Order order = Order::kRows;
  Dim count;               ///< of a square: 4, 16
  bool has_class = false;  ///< the last position is no patch
};
/// Looks rows of a table up: by token, by position or segment of the input, or by where a patch is
/// in the square grid that the rows are; a wider image begins again at its first row or column.
/// What is no patch has the first row, which then stands before those of the grid.
struct Embed {
  enum class By { kToken, kPosition, kSegment, kPatch };
  By by = By::kToken;
  Dim rows, size;
  Number offset;    ///< the row of position 0
  Patches patches;  ///< of kPatch
};
/// The patches of every square as one position: their features one patch after the other, or of
/// each feature its patches, or their mean. There are as many positions as before: after the last
/// square the first ones come again.
struct Merge {
  enum class Form { kBeside, kWithin, kMean };
  Patches patches;
  Form form = Form::kBeside;
};
/// The first input where words are, and where an image is what the second one says: as many
/// positions as the patches have squares, from the first on.
struct Insert {
  Patches patches;
};
/// The last position is a stored vector instead.
struct ClassToken {
  Dim size;
};
/// Cuts the features of a value into the op's outputs. kConcat: one section after the other;
/// kPerHead: `heads` times all sections; kInterleaved: the sections' features take turns.
struct Split {
  enum class Order { kConcat, kPerHead, kInterleaved };
  Order order = Order::kConcat;
  std::vector<Dim> sections;
  Dim heads;  ///< of kPerHead
};
/// The stretch of `size` features that belongs to the layer, of a value that has one for each.
struct OfLayer {
  Dim size;
};
/// Puts the inputs' sections of every head together; an input of one section's width is shared by
/// all heads. kConcat: the inputs one after the other.
struct Join {
  enum class Order { kPerHead, kConcat };
  Order order = Order::kPerHead;
  std::vector<Dim> sections;  ///< of kPerHead; so
  Dim heads;
};
/// Over `size` features of a row, or of every head. Without a weight the factors are 1.
struct Norm {
  using Kind = kernels::NormKind;
  Kind kind = Kind::kRms;
  Dim size;
  Number eps;
  bool per_head = false;
  std::optional<Dim> heads;        ///< of per_head: every head has a weight of its own, in a row
                                   ///< of one tensor or in a tensor whose name has <head>
  bool one_plus_weight = false;    ///< times (1 + w)
  bool cast_after_weight = false;  ///< multiplied in f32, rounded last
};
/// The sum of the squares of every `size` features, or of themselves; what several devices have
/// some of they add up.
struct Sums {
  Dim size;
  bool squared = true;
};
/// A value divided by the root of the mean that such sums give, times a weight of each feature: a
/// norm over `size` features that no device need have.
struct Normalise {
  Dim features, size;
  Number eps;
};
/// A value with the root of the mean square that another one has: inputs are the value and both
/// sums of squares, its own first, of which `least` is the least mean that counts.
struct Resize {
  Dim size;
  Number least;
};
/// What of a value is above the share that a normal distribution of its mean and deviation has
/// below: max(0, x - mean - deviation * quantile(share)). Inputs are the value, the sum of its
/// `size` features and that of their squares.
struct Cutoff {
  Dim size;
  std::vector<std::string> shares;  ///< paths of a list with one for each layer
};
/// Sums of streams, which are stretches of `size` features of the first input, by factors of each
/// token: y_j = sum_i c[j * from + i] x_i, or where they are by source c[i * to + j].
struct Mix {
  Dim size, from, to;
  bool by_source = false;
};
/// A matrix of `size` x `size` features, positive and so that its rows and its columns add up to
/// about 1: the softmax of its rows, + eps, then columns divided by their sums + eps, and with each
/// further round rows and columns in turn.
struct Balance {
  Dim size;
  Number rounds, eps;
};
/// Rotates by where a patch is: the first half of a head's pairs by its row, the second by its
/// column, or the other way around. Each half has the frequencies that so many features have, or
/// every second one of those that the whole head has. What is no patch is not rotated.
struct RotatePatches {
  enum class Frequencies { kOfHalf, kEverySecond };
  Patches patches;
  Frequencies frequencies = Frequencies::kOfHalf;
  bool columns_first = false;
  Number first;  ///< the angle of the first row and column is so many steps
};
/// Rotates the first `fraction` of every `head` features, by angles of `theta`, which a list in
/// config.json may say for each layer; it may ask for other ones at the first of the paths
/// `scaling` that it has. kDeinterleavedHalf takes even and odd ones apart first and leaves them
/// so.
struct Rope {
  enum class Style { kHalf, kInterleaved, kDeinterleavedHalf };
  Style style = Style::kHalf;
  Dim head;
  Number fraction{{}, 1};
  std::optional<Dim> first;     ///< instead of a fraction: so many features
  bool at_end = false;          ///< not the first of every head's features, but the last
  bool back = false;            ///< by the negative of the angles
  std::optional<Dim> of_first;  ///< as the first one of so many positions that a value ends
  Number theta;
  std::vector<std::string> scaling{"rope_parameters", "rope_scaling"};
  std::optional<Number> yarn_factor;     ///< of cosines and sines, where yarn's parameters say none
  std::optional<RotatePatches> patches;  ///< instead of by positions, and without scaling
};
/// What every head adds to its scores by how far a key is from its query: the stored table
/// [buckets, heads] as a value, the same of every token: head after head, of each its buckets.
struct PositionBias {
  Dim heads, buckets;
};
/// Which layers attend to the last `size` positions only (where later ones are seen, too, to those
/// that are nearer than `size`), or to the positions since the last multiple of `size`.
struct Window {
  enum class Kind { kSliding, kChunked };
  Kind kind = Kind::kSliding;
  std::optional<LayerSet> layers;  ///< nothing: all
  std::string config;              ///< the path of the size; null or 0: no window
  i64 otherwise = 0;               ///< the size where the config has no such path; 0: no window
  std::string before;              ///< where it is said without the token itself; counts first
  std::string around;              ///< where it is said of both sides together, half of it on each,
                                   ///< without the token itself; counts first
  std::string when;                ///< the path of what must be true; empty: nothing
};
/// Linear biases: a head's score for position p is more by p times the head's slope, which follows
/// from the number of heads.
enum class Alibi { kNone, kBeforeScale, kAfterScale };
/// Which positions an attention sees: the `top_k` with the best scores, which are sums over `heads`
/// of a weight times relu(query * key).
struct PositionIndex {
  Dim heads, dim, top_k;
  bool made_before = false;  ///< by a layer before, whose choice it is
};
/// The bucket of every distance between a key and its query: near ones have buckets of their own,
/// and further ones share them by their logarithm, up to most_distance. Where positions after the
/// query are seen, they have half of the buckets; kSigned: those before the query have the other
/// half, from the middle on outwards.
struct Buckets {
  enum class Kind { kOneSided, kSigned };
  Kind kind = Kind::kOneSided;
  Dim count;
  Number most_distance;
  bool of_keys = false;  ///< keys have biases, too, by the same buckets
};
/// How well every head's query, or its key, goes with the key of each bucket, which is the bucket's
/// row of a stored table, [buckets, size], normed over the row where there are weights for it, and
/// projected: head after head, of each its buckets.
struct BucketScores {
  Dim rows, head_dim, size;
  Buckets buckets;
  Number eps;
  Number scale{{}, 1};          ///< of scores
  std::optional<Dim> scale_of;  ///< they are divided by its square root, too
};
/// Inputs are queries, keys and values; with an index its queries [heads * dim], keys [dim] and
/// weights [heads], too; with entries their keys and values; with buckets their biases at last,
/// those of queries before those of keys.
struct Attention {
  Dim heads, kv_heads, key_dim, value_dim;
  Number scale{{}, 1};          ///< of scores
  std::optional<Dim> scale_of;  ///< they are divided by its square root, too
  bool yarn_scale = false;  ///< scores also times the square of yarn's factor, where it is for all
  bool causal = true;
  std::optional<Window> window;
  Number softcap;  ///< 0: none
  Alibi alibi = Alibi::kNone;
  std::optional<Dim> cache;  ///< elements that a position keeps; nothing: its keys and values
  std::optional<PositionIndex> index;  ///< of entries, where there are any
  std::optional<Dim> entries;  ///< beside positions: so many have one together, in the row of the
                               ///< last one, which is seen from there on, whatever the window
  std::optional<Buckets> buckets;
};
/// How many of an attention's inputs are biases.
inline size_t biases_of(const Attention& attention) {
  if (!attention.buckets) return 0;
  return attention.buckets->of_keys ? 2 : 1;
}
/// Every feature with those of the taps - 1 positions before it, by weights of its own.
struct Convolve {
  Dim features, taps;
};
/// Of every position the mean of the last ones up to it, feature by feature, by the softmax of the
/// second input plus a stored number for each tap. A value of `width` features has so many times
/// `size` of them: the last `taps` positions give their last `size`, the `taps` before these give
/// those before, and so on. Positions that are not there count for nothing.
struct Pool {
  Dim size, width, taps;
};
/// How far every head's state moves: softplus(x + bias) within limits.
struct StepSize {
  Dim heads;
  Number least;
  Number most{{}, std::numeric_limits<double>::infinity()};
};
/// What that leaves of the state: e^(-e^rate x), of a head one number; or `states` with rates of
/// their own; or one for each of a head's `steps`, with one rate. With a least exponent it is
/// e^(least sigmoid(e^rate x)), of any x.
struct Decay {
  Dim heads;
  std::optional<Dim> states, steps;
  std::optional<Number> least;
};
/// What every token leaves of a state alike: e^-x of the head's stored number, [heads, 1, 1].
struct Fade {
  Dim heads;
};
/// A state per head, key_dim x value_dim, that goes from one position to the next. Inputs are
/// queries and keys, which heads / key_heads heads share, values, and of every head a decay and a
/// gate, which is 1 where none is given; a decay is one number for the whole state, or one for each
/// of the key_dim. With a skip every head's values times its number are added to what it reads.
struct Recurrence {
  kernels::RecurrenceRule rule = kernels::RecurrenceRule::kAdd;
  Dim heads, key_heads, key_dim, value_dim;
  std::optional<Dim> scale_of;   ///< queries are divided by its square root
  std::optional<Dim> decay_dim;  ///< numbers of a head's decay; nothing: 1
};
struct Activation {
  Word kind;
};
/// xIELU, whose numbers are stored: alpha_p, alpha_n, beta and eps.
struct Xielu {};
/// Feature by feature; a value of fewer features has one for every so many of the other's.
struct Multiply {};
struct Add {};
/// Times a number, and with a weight also times that: one stored number for all features, or one
/// for every so many of them.
struct Scale {
  Number by{{}, 1};
  std::optional<Dim> size;    ///< of the weight
  std::vector<Dim> sections;  ///< of features that each have one of its numbers; none: equal ones
  bool by_sqrt = false;       ///< by the square root of the number, rounded to the weights' dtype
  bool divides = false;
};
/// Plus a number, and with a bias also plus a stored one for each feature.
struct Shift {
  Number by;
  std::optional<Dim> size;  ///< of the bias
};
/// Times 1 + strength * ln(1 + floor((p + first) / span)) at position p.
struct Temper {
  Number strength, span;
  Number first{{}, 1};
};
struct Softcap {
  Number cap;
};
/// Within [-limit, limit], or no more than the limit; 0: as it is.
struct Clamp {
  Number limit;
  bool from_above = false;
};
/// Scores for every expert, of which top_k are chosen: by the scores, or those that a stored table
/// names for every word, [words, top_k].
struct Router {
  using Kind = kernels::RouterSpec::Kind;
  Kind kind = Kind::kSoftmaxTopK;
  Dim experts, top_k, columns;
  Word renormalise;           ///< "true" or "false"
  Number scale{{}, 1};        ///< of the weights
  Number groups, top_groups;  ///< of kGroupMax and kSigmoidGroups; 0: one group
  Number least_sum;           ///< that renormalising divides by
  Number jitter;              ///< of kSparseMixer
  std::optional<Dim> words;   ///< of the table, which is there instead of a bias

  /// Whether the bias counts in choosing only; else it is that of the scores.
  bool is_corrected() const {
    return kind == Kind::kSigmoidGroups || kind == Kind::kCorrectedSoftmax ||
           kind == Kind::kCorrectedSigmoid || kind == Kind::kRootSoftplus;
  }
};
/// The chosen experts' outputs, summed with the router's weights, or with 1 where those are factors
/// of what the experts read (scales_input). A form says in which tensors the
/// experts are: the first whose tensors the checkpoint has counts.
struct Experts {
  enum class Order { kSeparate, kStacked, kInterleaved, kUngated };
  struct Form {
    Order order = Order::kSeparate;  ///< of gate and up; kUngated: the activation of up alone
    bool per_expert = true;          ///< one tensor per expert, <expert> in its name
    bool in_rows = false;            ///< of stacks: one expert below the other in the rows, where
                                     ///< others have an axis before them
    std::vector<WeightRef> weights;  ///< gate, up, down; or gate_up, down; or up, down; then biases
    std::vector<layout::Kernel> kernels;  ///< of each of the weights
  };
  Dim experts, top_k, embed, mlp;
  std::optional<Dim> among;  ///< top_k are chosen of so many, the others of which compute nothing
  Word activation;
  Number limit;  ///< gates are at most that, and what they open is within it; 0: as they are
  bool scales_input = false;
  std::vector<Form> forms;
};

/// One step of a forward pass: values in, values out, by name.
struct Op {
  using Kind = std::variant<Embed, Given, Sinusoids, ConvolveFrames, Linear, Merge, Insert,
                            ClassToken, Split, OfLayer, Join, Norm, Sums, Normalise, Resize, Cutoff,
                            Mix, Balance, Rope, PositionBias, BucketScores, Attention, Convolve,
                            Pool, StepSize, Decay, Fade, Recurrence, Activation, Xielu, Multiply,
                            Add, Scale, Shift, Temper, Softcap, Clamp, Router, Experts>;
  std::vector<std::string> in;
  std::vector<std::string> out;
  Kind kind;
  /// Weight, then bias, where there is one; of a Router by words weight and table; of BucketScores
  /// table, weight and bias of the norm, weight and bias of the projection; the sinks of Attention,
  /// the numbers of the taps of Pool, [taps, width], the bias of StepSize, the rate
  /// of Decay and of Fade, the skip of Recurrence, the numbers of Xielu. Those of Experts are in
  /// its forms.
  std::vector<WeightRef> weights;
  bool is_head = false;  ///< a Linear whose result leaves the model
  Place place;
};

}  // namespace shardtool::model

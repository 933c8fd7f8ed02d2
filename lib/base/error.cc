#include "lib/base/error.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace shardtool {
namespace {

using enum ErrorCode;

constexpr auto kErrors = std::to_array<ErrorInfo>({
    {kUsage, "E0101", 2, "the command line is not understood",
     "A flag, a value or an argument is unknown, missing or out of range. `shardtool help "
     "<command>` lists what the command takes."},
    {kMemoryBudget, "E0102", 2, "the memory budget is too small",
     "--max-memory must be at least 4MiB. Raise it, or leave it out: the default is 64MiB, and "
     "512MiB with an object store."},
    {kMappingSyntax, "E0201", 3, "the file is not strict JSON",
     "Mapping files are plain JSON in UTF-8: no comments, no trailing commas, no byte order mark, "
     "no duplicate keys, integers where integers are meant."},
    {kMappingSchema, "E0202", 3, "the mapping does not follow the schema",
     "A key is unknown, missing or of the wrong type. `shardtool schema` prints the JSON Schema."},
    {kNotDivisible, "E0203", 3, "an axis does not divide over the mesh",
     "The units of the axis cannot be distributed evenly and the mapping or --require-even refuses "
     "an uneven cut. Use another mesh size, or allow it with \"uneven\": \"balanced\"."},
    {kUnknownName, "E0204", 3, "a name is not defined",
     "An axis, mesh axis, preset, strategy or capture is used that nothing defines."},
    {kNoRule, "E0205", 3, "a tensor matches no rule",
     "Nothing is guessed: every tensor needs a rule. Add one, choose a preset that knows the "
     "model, or say \"unknown\": \"replicate\"."},
    {kAmbiguousRule, "E0206", 3, "two rules of one list match a tensor",
     "A tensor may match one of a file's \"rules\" and one of its \"overrides\", which come first. "
     "Narrow one of the two, or move it to \"overrides\"."},
    {kUnusedRule, "E0207", 3, "a rule matches nothing",
     "Usually a typo in a pattern. Correct or delete the rule; a mapping may also say "
     "\"unused_rule\": \"ignore\"."},
    {kShapeMismatch, "E0208", 3, "a rule does not fit the tensor's shape",
     "The number of dims differs from the rank, an axis is out of range, or a size differs from "
     "the extent of the axis. Often config.json is that of another model than the tensors."},
    {kMeshAxisReused, "E0209", 3, "a mesh axis cuts one tensor twice",
     "One mesh axis, or parts of it that overlap, cannot cut two axes of one tensor: each device "
     "has one coordinate on it."},
    {kEmptyShard, "E0210", 3, "a rank would get an empty shard",
     "There are more devices than units to deal out. Use fewer, replicate (\"small\": "
     "\"replicate\"), or allow it with --allow-empty-shards."},
    {kBlockStraddle, "E0211", 3, "a cut falls inside a block",
     "Quantisation blocks and packed elements are indivisible. Choose a mesh size whose cuts fall "
     "on block boundaries, or keep the tensor whole."},
    {kSizeExpression, "E0212", 3, "a size cannot be computed",
     "The expression names a config value that is absent or no positive integer, or a division is "
     "not exact."},
    {kExtends, "E0213", 3, "an inherited mapping cannot be used",
     "\"extends\" names a preset or a relative file inside the mapping's own folder tree, without "
     "cycles, at most 8 levels deep."},
    {kGroups, "E0214", 3, "query and key/value heads cannot share one cut",
     "Up to as many devices as there are KV heads, whole KV groups are distributed; on a multiple "
     "of them KV heads are replicated and the query heads must divide. Other counts need "
     "\"small\": \"gather\"."},
    {kMesh, "E0215", 3, "the mesh is not valid",
     "A mesh is a list of named axes of size 1 or more; its product is the number of devices."},
    {kAssertion, "E0216", 3, "the checkpoint differs from what the mapping asserts",
     "A rule's \"count\" or \"dtype\" does not hold for the tensors that it matches, or an index "
     "of an axis, such as an expert of a layer, is missing, occurs twice or is too large."},
    {kStrategy, "E0217", 3, "the strategy cannot be applied",
     "tensor_parallel and expert_parallel belong to modules, gate_up needs an even extent, stacked "
     "QKV must match its heads, and head-aware cuts must match the width."},
    {kSubByteCut, "E0218", 3, "a cut falls inside a byte",
     "Elements of 4 or 6 bits are packed; every cut must fall on a byte boundary."},
    {kTied, "E0219", 3, "tied tensors differ",
     "Tensors that are declared tied must have the same shape, the same cut and the same bytes."},
    {kConfig, "E0220", 3, "config.json cannot be used",
     "The model's config.json is absent, malformed, or names an architecture no preset knows."},
    {kHardwareProfile, "E0221", 3, "the hardware profile cannot be used",
     "A profile names every quantity with its unit, such as \"gb_per_s\". A field is unknown, "
     "missing "
     "or out of any sensible range. `shardtool plan profile show NAME` prints one that works."},
    {kPlacement, "E0222", 3, "no allowed move brings the operands to placements that fit",
     "An operation takes its operands in certain placements only. Place them so that one of its "
     "rows fits, or allow the transition that the message names."},
    {kUnreadable, "E0301", 4, "the input cannot be read", "The file cannot be opened or read."},
    {kMalformed, "E0302", 4, "the file is damaged or contradicts itself",
     "safetensors: the first 8 bytes give the header's length, the header is JSON, the tensors "
     "tile "
     "the rest of the file exactly. torch: a zip archive of stored records, or pickles end to "
     "end."},
    {kHeaderJson, "E0303", 4, "the safetensors header is not valid JSON",
     "The header must be one strict JSON object without duplicate names."},
    {kTensorInvalid, "E0304", 4, "a tensor entry is invalid",
     "dtype, shape and offsets must agree with each other and with the file."},
    {kIndexInvalid, "E0305", 4, "the index file is invalid",
     "The index.json must map every tensor to the one file beside it that holds it, and nothing "
     "else."},
    {kFileMissing, "E0306", 4, "a file of the checkpoint is missing",
     "The index, the manifest or the path names a file that is not there."},
    {kUnsupported, "E0307", 4, "this is not supported",
     "The message names what this version does not do: a file format, a layout of an engine, a "
     "quantisation, or a model whose computation it does not know. Of torch's files (.bin, .pt, "
     ".pth, .ckpt) the pickle is read as data and never executed, so that only tensors in dicts "
     "and lists are found."},
    {kManifestInvalid, "E0308", 4, "the manifest is invalid",
     "manifest.json is damaged, was edited, or was written by a newer version. Where several "
     "outputs are given together, they are not all of one split: their meshes, types or sources "
     "differ, or one is left from an earlier run."},
    {kInputChanged, "E0309", 4, "the input changed while it was read",
     "Size, time or identity of a source file changed during the run, or differs between the "
     "processes of a launch. Nothing was published."},
    {kDataMismatch, "E0310", 4, "the data does not match its digest",
     "The bytes of a tensor differ from what the manifest recorded, or replicas of it differ from "
     "each other. The folder is damaged or was edited."},
    {kCoverage, "E0311", 4, "the shards do not cover a tensor",
     "Some elements are held by no shard, or shards that must not overlap do."},
    {kOtherRun, "E0312", 4, "the interrupted run was another one",
     "--resume and --share go on only where the source, the mapping and the options are those of "
     "the run that began. Without them a run starts anew and deletes what is there."},
    {kPlanInvalid, "E0313", 4, "the plan cannot be applied",
     "A plan file is applied exactly as it was made or not at all: it is no plan, was edited, "
     "comes "
     "from another version, or no longer describes what would be done. Make it again with "
     "`shardtool plan SRC --to ... -o FILE`."},
    {kStoreRefused, "E0314", 4, "the object store refused a request",
     "Keys are missing, wrong or ended, the clock is off, the bucket is in another region, or a "
     "policy denies access. The message says which. Keys are never sent to another address than "
     "the endpoint."},
    {kShareMissing, "E0315", 4, "shares of the output are missing",
     "An output that is written in shares is published when all of them have ended. Run the shares "
     "that the message names, each with its command line of before; what they finished is kept."},
    {kOutputExists, "E0401", 5, "the output exists",
     "Nothing is overwritten without --force, which replaces an earlier output: its whole folder, "
     "with every file in it. A folder that is no output of shardtool is never replaced."},
    {kWriteFailed, "E0402", 5, "writing failed",
     "The system refused to write, sync or rename. An output appears whole or not at all: it is "
     "there if only the report could not be written."},
    {kNoSpace, "E0403", 5, "not enough space", "The output does not fit on its file system."},
    {kOutputLocked, "E0404", 5, "another run writes this output",
     "Two runs cannot write one output. Wait for the other, or choose another folder."},
    {kOutputAliasesInput, "E0405", 5, "the output is inside the input",
     "Input and output must be different folders, and the output's own name must not be a symbolic "
     "link."},
    {kLimit, "E0501", 6, "a limit was reached",
     "The system refused memory, threads or descriptors, or a header is larger than the format "
     "allows."},
    {kPeerLost, "E0502", 6, "another process of the run is gone",
     "Processes that mpirun, srun or torchrun starts share the work. One of them ended without a "
     "word, did not begin, or cannot be reached over the network."},
    {kEngineMissing, "E0503", 6, "an engine is missing",
     "What is to carry the processes' messages, or to compute, needs a library or a device that "
     "this "
     "machine or this build lacks. The embedded engine needs neither."},
    {kDeviceFailed, "E0504", 6, "a GPU failed",
     "A call to a GPU that is here failed, or to a library that computes there: nothing is decided "
     "then. Another run may succeed, on another machine if need be; the embedded engine computes "
     "on "
     "the CPU."},
    {kStoreUnreachable, "E0505", 6, "the object store does not answer",
     "Requests failed, hung, were put off or moved less than 1024 bytes a second for a minute "
     "(SHARDTOOL_S3_TIMEOUT, in seconds), or tries ran out (AWS_MAX_ATTEMPTS)."},
    {kInterrupted, "E0601", 130, "interrupted",
     "A signal ended the run. The exit status is 130 after SIGINT, 143 after SIGTERM and 129 after "
     "SIGHUP. Nothing was published under the final name."},
    {kInternal, "E0901", 70, "internal error",
     "A bug in shardtool. Please report the message and the command line."},
});

}  // namespace

std::span<const ErrorInfo> error_table() {
  return kErrors;
}

const ErrorInfo& error_info(ErrorCode code) {
  return *std::find_if(kErrors.begin(), kErrors.end(),
                       [code](const ErrorInfo& row) { return row.code == code; });
}

const ErrorInfo* find_error(std::string_view id) {
  const auto same = [id](const ErrorInfo& row) {
    return std::equal(id.begin(), id.end(), row.id.begin(), row.id.end(), [](char a, char b) {
      return std::toupper(static_cast<unsigned char>(a)) == b;
    });
  };
  const auto row = std::find_if(kErrors.begin(), kErrors.end(), same);
  return row == kErrors.end() ? nullptr : &*row;
}

Error& Error::at(Place place) & {
  place_ = std::move(place);
  return *this;
}

Error& Error::tensor(std::string_view name) & {
  if (tensor_.empty()) tensor_ = name;
  return *this;
}

Error& Error::note(std::string_view label, std::string text) & {
  notes_.emplace_back(label, std::move(text));
  return *this;
}

Error& Error::help(std::string text) & {
  help_.push_back(std::move(text));
  return *this;
}

Error& Error::resumable() & {
  is_resumable_ = true;
  return *this;
}

Error& Error::leaderless() & {
  is_leaderless_ = true;
  return *this;
}

}  // namespace shardtool

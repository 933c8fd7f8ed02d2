#include "cli/man_page.h"

#include <fmt/format.h>

#include <array>
#include <cctype>

#include "cli/help_text.h"
#include "cli/size_argument.h"

namespace shardtool::cli {
namespace {

/// Escapes scdoc markup.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '_' || c == '*' || c == '\\' || c == '#' || c == '`') out += '\\';
    out += c;
  }
  return out;
}

std::string arguments(std::string_view title, const std::vector<Argument>& list, bool positional) {
  std::string out;
  for (const auto& argument : list) {
    if (argument.positional() != positional) continue;
    out += fmt::format("*{}*\n\t{}\n\n", plain(signature(argument)), plain(full_help(argument)));
  }
  return out.empty() ? out : fmt::format("# {}\n\n{}", title, out);
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string examples(const std::vector<std::string>& lines) {
  std::string out = "# EXAMPLES\n\n";
  for (const auto& line : lines) out += fmt::format("\t{}\n\n", plain(line));
  return out;
}

std::string exit_status() {
  std::string out = "# EXIT STATUS\n\n";
  for (const auto& [code, meaning] : kExitCodes) {
    out += fmt::format("*{}*\n\t{}\n\n", static_cast<int>(code), plain(meaning));
  }
  return out;
}

struct Variable {
  std::string_view names;
  std::string_view meaning;
};

/// Environment variables: those of object stores as the tools of AWS read them, and our own.
constexpr auto kVariables = std::to_array<Variable>({
    {"AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL",
     "the service, such as http://host:9000; AWS without it"},
    {"AWS_REGION, AWS_DEFAULT_REGION", "the bucket's region, us-east-1 unless said"},
    {"AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN", "keys"},
    {"AWS_PROFILE, AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE",
     "a profile with keys, region and endpoint, and the files that have it"},
    {"AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME, "
     "AWS_ENDPOINT_URL_STS",
     "keys of a role, for a token"},
    {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, AWS_CONTAINER_CREDENTIALS_FULL_URI, "
     "AWS_CONTAINER_AUTHORIZATION_TOKEN, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
     "keys of a container"},
    {"AWS_EC2_METADATA_DISABLED, AWS_EC2_METADATA_SERVICE_ENDPOINT",
     "true: no keys of the instance are asked for; where they are asked for"},
    {"AWS_SKIP_SIGNATURE", "true: requests are anonymous, for public buckets"},
    {"AWS_S3_ADDRESSING_STYLE", "path, virtual or auto: the bucket's place in the address"},
    {"AWS_CA_BUNDLE", "file of certificate authorities instead of the system's"},
    {"AWS_MAX_ATTEMPTS", "how often a request is sent, 8 unless said"},
    {"SHARDTOOL_S3_TIMEOUT",
     "seconds after which a request fails, 60 unless said, of waiting or at less than 1024 bytes a "
     "second"},
    {"SHARDTOOL_COLOR, SHARDTOOL_PROGRESS, SHARDTOOL_MAX_MEMORY, SHARDTOOL_THREADS, "
     "SHARDTOOL_MPI_PLUGIN, SHARDTOOL_NCCL, SHARDTOOL_CUDA_RUNTIME",
     "the flag of this name, where none is typed"},
    {"SHARDTOOL_SECRET",
     "a word that the processes of one launch share: over TCP they answer no others"},
    {"HF_HUB_CACHE, HF_HOME", "the folder of hf://, in place of ~/.cache/huggingface/hub"},
    {"TMPDIR",
     "folder for small files of an output for an object store; for all of it where padding repeats "
     "elements"},
});

std::string locations() {
  return "# LOCATIONS\n\nEvery command that reads a checkpoint takes a folder, an index, a file of "
         "weights, or hf://org/name\\[@revision\\] of the local Hugging Face cache. A folder is "
         "opened in the first format that it has:\n\n"
         "*manifest*\n\tan output of shardtool, by its manifest.json\n\n"
         "*dcp*\n\ttorch.distributed.checkpoint, by .metadata or .distcp files\n\n"
         "*safetensors*\n\tby an index, or the .safetensors files\n\n"
         "*torch*\n\tby an index, rank files of FSDP or Megatron, or .bin, .pt, .pth and .ckpt "
         "files\n\n"
         "*gguf*\n\tread by *inspect* and *check* only\n\n"
         "A warning names the files of other formats. FORMAT:LOCATION insists on one of them, for "
         "each location by itself. LOCATION\\#PREFIX takes only the tensors whose names begin with "
         "PREFIX and a dot, without them.\n\n"
         "\tshardtool diff torch:models/gpt2 safetensors:models/gpt2\n\n"
         "\tshardtool merge dcp:step-1000\\#model -o full\n\n";
}

std::string object_stores_and_environment() {
  std::string out =
      "# OBJECT STORES\n\nA checkpoint, a mapping file and a config may be s3://bucket/prefix, on "
      "any "
      "service that speaks S3 (Google's by its HMAC keys). split, merge and reshard write there, "
      "too: parts are sent while the run goes on, the manifest comes last, and until then readers "
      "refuse the prefix. An output that --force replaces stays readable until all of the new one "
      "was sent; shares, and padding that repeats elements, delete it before they send. Of two "
      "runs that write one prefix at the same time one fails. Rows whose source is on the same "
      "store are copied there and never reach "
      "this machine. Nobody has read such tensors, so the manifest has no hashes of them; with "
      "--verify they are read and hashed. What a run has done is kept below the prefix, so that "
      "--resume and "
      "--share work from any machine, except where padding repeats elements. *shardtool resume* "
      "--list and --discard take a prefix; *shardtool doctor* s3://bucket/prefix lists uploads "
      "that "
      "nobody finished. --dry-run and *shardtool plan* count requests and bytes, also those "
      "that the store copies by itself.\n\n"
      "The policy of a bucket must allow s3:GetObject and s3:ListBucket to read. To write it must "
      "also allow s3:PutObject, s3:DeleteObject (hidden objects and the mark of an unfinished "
      "output "
      "are deleted in the end), s3:AbortMultipartUpload, s3:ListMultipartUploadParts and "
      "s3:ListBucketMultipartUploads.\n\n"
      "\tshardtool split s3://models/llama-8b -o s3://models/llama-8b-tp4 --tp 4\n\n"
      "\tAWS\\_ENDPOINT\\_URL=https://storage.googleapis.com shardtool check "
      "s3://models/llama-8b\n\n"
      "# ENVIRONMENT\n\n";
  for (const auto& [names, meaning] : kVariables) {
    out += fmt::format("*{}*\n\t{}\n\n", plain(names), plain(meaning));
  }
  return out;
}

std::string command_page(const Command& command, const CommandTree& tree) {
  auto out =
      fmt::format("shardtool-{}(1)\n\n# NAME\n\nshardtool-{} - {}\n\n", joined_name(command, '-'),
                  joined_name(command, '-'), plain(command.summary));
  out += fmt::format("# SYNOPSIS\n\n*{}*\n\n", plain(usage_line(command)));
  out += fmt::format("# DESCRIPTION\n\n{}\n\n", plain(command.description));
  out += examples(command.examples);
  out += arguments("ARGUMENTS", command.arguments, true);
  for (const auto& [title, flags] : flags_by_group(command.arguments)) {
    out += arguments(upper(title), flags, false);
  }
  out += arguments("GLOBAL FLAGS", tree.global, false);
  return out + exit_status() + "# SEE ALSO\n\n*shardtool*(1), *shardtool-mapping*(5)\n";
}

std::string program_page(const CommandTree& tree) {
  std::string out =
      "shardtool(1)\n\n# NAME\n\nshardtool - cut model checkpoints into per-device shards\n\n"
      "# SYNOPSIS\n\n*shardtool* COMMAND [arguments] [flags]\n\n"
      "# DESCRIPTION\n\nReads safetensors checkpoints of any size within a fixed budget of memory, "
      "cuts every tensor by the rules of a mapping file, and writes a file per rank with a "
      "manifest. What was split can be merged and resharded, byte for byte. Outputs appear "
      "complete or not at all.\n\n# COMMANDS\n\n";
  for (const auto& command : tree.commands) {
    out += fmt::format("*shardtool-{}*(1)\n\t{}\n\n", joined_name(command, '-'),
                       plain(command.summary));
  }
  return out + arguments("GLOBAL FLAGS", tree.global, false) + "# SIZES\n\n" +
         std::string(kSizeSyntax) + "\n\n" + locations() + object_stores_and_environment() +
         exit_status() +
         "# SEE ALSO\n\n*shardtool-mapping*(5), *shardtool-formats*(5), *shardtool-graph*(5), "
         "*shardtool-ops*(5), *shardtool-manifest*(5)\n";
}

}  // namespace

std::string man_page(const Command* command, const CommandTree& tree) {
  return command == nullptr ? program_page(tree) : command_page(*command, tree);
}

}  // namespace shardtool::cli

#include "lib/ops/spelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::ops {
namespace {

using mapping::GlobToken;

size_t choices(const GlobToken& token) {
  return token.kind == GlobToken::Kind::kChoice ? token.choices.size() : 1;
}

}  // namespace

Spelling::Spelling(const std::string& glob) {
  const mapping::Glob pattern(glob);
  tokens_.assign(pattern.tokens().begin(), pattern.tokens().end());
  size_t texts = 1;
  for (const GlobToken& token : tokens_) {
    texts *= choices(token);
    if (texts <= kMost) continue;
    throw Error(ErrorCode::kLimit, fmt::format("'{}' expands to more than {} names",
                                               quote_for_message(glob, 100), kMost))
        .help("write fewer choices {a,b} in it and in its prefix");
  }
}

size_t Spelling::count() const {
  size_t product = 1;
  for (const GlobToken& token : tokens_) product *= choices(token);
  return product;
}

std::string Spelling::text(size_t choice, const NumberOf& number_of) const {
  std::string text;
  size_t below = count();
  for (const GlobToken& token : tokens_) {
    below /= choices(token);
    if (token.kind == GlobToken::Kind::kChoice) {
      text += token.choices[choice / below % choices(token)];
    } else if (token.kind == GlobToken::Kind::kNumber) {
      text += std::to_string(number_of(token.text));
    } else {
      text += token.text;
    }
  }
  return text;
}

std::string Spelling::likeliest(const NumberOf& number_of,
                                std::span<const TensorSpec> tensors) const {
  std::string likeliest = text(0, number_of);
  std::ptrdiff_t most = 0;
  for (size_t choice = 0; choice < count(); ++choice) {
    const std::string spelling = text(choice, number_of);
    for (const TensorSpec& tensor : tensors) {
      const auto differs =
          std::mismatch(spelling.begin(), spelling.end(), tensor.name.begin(), tensor.name.end());
      const auto dot = std::find(std::reverse_iterator(differs.first), spelling.crend(), '.');
      const auto shared = spelling.crend() - dot;  // up to a dot
      const bool is_shorter = shared == most && spelling.size() < likeliest.size();
      if (shared < most || (shared == most && !is_shorter)) continue;
      likeliest = spelling;
      most = shared;
    }
  }
  return likeliest;
}

}  // namespace shardtool::ops

#include "lib/ops/rope/rope_frequencies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <optional>
#include <string>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/ops/attention/attention.h"
#include "lib/ops/rope/rope.h"

namespace shardtool::ops {
namespace {

using mapping::ModelConfig;
using nlohmann::json;

/// The rotation's parameters in config.json.
class Scaling {
 public:
  Scaling(const ModelConfig& config, std::span<const std::string> paths) : config_(config) {
    for (const std::string& key : paths) {
      const json* value = config.find(key);
      if (value == nullptr || value->is_null() || value->empty()) continue;
      if (!value->is_object()) fail(key, "an object", *value);
      path_ = key;
      value_ = value;
      break;
    }
    refuse_layer_types();
  }

  /// Returns the type of scaling; "default" if there is none.
  std::string type() const {
    for (const char* key : {"rope_type", "type"}) {
      const json* value = member(key);
      if (value == nullptr) continue;
      if (!value->is_string()) fail(path_ + "." + key, "a string", *value);
      return resolved(value->get<std::string>());
    }
    return "default";
  }
  std::optional<double> find(const char* key) const {
    const json* value = member(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) fail(path_ + "." + key, "a number", *value);
    return value->get<double>();
  }
  double number(const char* key) const {
    const auto value = find(key);
    if (!value) fail(path_ + "." + key, "a number", json());
    return *value;
  }
  bool flag(const char* key, bool fallback) const {
    const json* value = member(key);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) fail(path_ + "." + key, "true or false", *value);
    return value->get<bool>();
  }
  /// Returns a list of `pairs` numbers.
  std::vector<double> list(const char* key, size_t pairs) const {
    const std::string expected = fmt::format("{} numbers, one per pair", pairs);
    const json* value = member(key);
    if (value == nullptr) fail(path_ + "." + key, expected, json());
    const bool fits =
        value->is_array() && value->size() == pairs &&
        std::all_of(value->begin(), value->end(), [](const json& one) { return one.is_number(); });
    if (!fits) fail(path_ + "." + key, expected, *value);
    return value->get<std::vector<double>>();
  }
  double longest() const {
    const auto size = config_.size("max_position_embeddings");
    if (!size) fail("max_position_embeddings", "a number", json());
    return static_cast<double>(*size);
  }
  /// Returns the length in training. Phi 3 has it outside of the rope parameters, and that value
  /// takes precedence.
  double trained() const {
    const auto outside = config_.size("original_max_position_embeddings");
    if (outside) return static_cast<double>(*outside);
    const auto inside = find("original_max_position_embeddings");
    return inside ? *inside : longest();
  }
  /// Returns the input length divided by the length in training.
  double stretch() const {
    const auto factor = find("factor");
    return factor ? *factor : longest() / trained();
  }

  [[noreturn]] void refuse(const std::string& type) const {
    throw Error(ErrorCode::kUnsupported, "rotations of this type are not computed")
        .note("found", fmt::format("{} of type '{}' in {}", path_, quote_for_message(type, 60),
                                   config_.file()))
        .note("expected", "default, linear, dynamic, llama3, yarn, longrope or proportional");
  }

 private:
  const json* member(const char* key) const {
    if (value_ == nullptr) return nullptr;
    const auto found = value_->find(key);
    return found == value_->end() || found->is_null() ? nullptr : &*found;
  }
  std::string resolved(std::string type) const {
    const bool has_lists = member("short_factor") != nullptr && member("long_factor") != nullptr;
    if (type == "su" || (type == "yarn" && has_lists)) return "longrope";
    if (type == "mrope") return "default";
    return type;
  }
  void refuse_layer_types() const {
    if (value_ == nullptr) return;
    for (const auto& [key, value] : value_->items()) {
      if (!value.is_object()) continue;
      throw Error(ErrorCode::kUnsupported,
                  "rotations that differ by type of layer are not computed")
          .note("found",
                fmt::format("{}.{} in {}", path_, quote_for_message(key, 60), config_.file()));
    }
  }
  [[noreturn]] void fail(const std::string& path, const std::string& expected,
                         const json& found) const {
    throw Error(ErrorCode::kConfig, fmt::format("'{}' in {} has no value that rotations can be "
                                                "computed from",
                                                path, config_.file()))
        .note("found", found.is_null() ? "nothing" : quote_for_message(found.dump(), 60))
        .note("expected", expected);
  }

  const ModelConfig& config_;
  const json* value_ = nullptr;
  std::string path_ = "rope_parameters";
};

std::vector<double> plain(i64 dims, double theta) {
  std::vector<double> inverse;
  for (i64 i = 0; i < dims; i += 2) {
    inverse.push_back(std::pow(theta, -static_cast<double>(i) / static_cast<double>(dims)));
  }
  return inverse;
}

std::vector<double> linear(std::vector<double> inverse, double factor) {
  for (double& f : inverse) f /= factor;
  return inverse;
}

/// Increases theta so that the slowest pair has the same angle at `length` as at the trained
/// length; with `alpha`, at alpha times the trained length.
double stretched_theta(const Scaling& scaling, i64 dims, double theta, i64 length) {
  const double exponent = static_cast<double>(dims) / static_cast<double>(dims - 2);
  const double alpha = scaling.find("alpha").value_or(0);
  if (alpha != 0) return theta * std::pow(alpha, exponent);
  const double factor = scaling.number("factor");
  const double longest = scaling.longest();
  const double reach = std::max(static_cast<double>(length), longest);
  return theta * std::pow(factor * reach / longest - (factor - 1), exponent);
}

std::vector<double> llama3(const Scaling& scaling, std::vector<double> inverse) {
  const double factor = scaling.number("factor");
  const double low = scaling.number("low_freq_factor");
  const double high = scaling.number("high_freq_factor");
  const double trained = scaling.trained();
  for (double& f : inverse) {
    const double turns = trained * f / (2 * std::numbers::pi);  // turns over the trained length
    if (turns < low) {
      f /= factor;
    } else if (turns <= high) {
      const double smooth = (turns - low) / (high - low);
      f = (1 - smooth) * f / factor + smooth * f;
    }
  }
  return inverse;
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

double yarn_attention_factor(const Scaling& scaling, double factor) {
  if (const auto given = scaling.find("attention_factor")) return *given;
  const double mscale = scaling.find("mscale").value_or(0);
  const double all_dims = scaling.find("mscale_all_dim").value_or(0);
  if (mscale == 0 || all_dims == 0) return yarn_mscale(factor, 1);
  return yarn_mscale(factor, mscale) / yarn_mscale(factor, all_dims);
}

/// The pairs between which yarn changes from b to b / factor: those that make beta_fast and
/// beta_slow turns over the trained length.
struct Ramp {
  double low, high;

  Ramp(const Scaling& scaling, i64 dims, double theta) {
    const double trained = scaling.trained();
    const auto pair_that_turns = [&](double times) {
      return static_cast<double>(dims) * std::log(trained / (times * 2 * std::numbers::pi)) /
             (2 * std::log(theta));
    };
    const auto given = [&](const char* key, double otherwise) {
      const double value = scaling.find(key).value_or(0);
      return value == 0 ? otherwise : value;
    };
    low = pair_that_turns(given("beta_fast", 32));
    high = pair_that_turns(given("beta_slow", 1));
    if (scaling.flag("truncate", true)) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(dims - 1));
    if (low == high) high += 0.001;
  }
  double at(size_t pair) const {
    return std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
  }
};

RopeFrequencies yarn(const Scaling& scaling, i64 dims, double theta,
                     std::optional<double> otherwise) {
  const double factor = scaling.stretch();
  const Ramp ramp(scaling, dims, theta);
  const bool is_given = scaling.find("attention_factor").has_value();
  const double size = otherwise && !is_given ? *otherwise : yarn_attention_factor(scaling, factor);
  RopeFrequencies found{plain(dims, theta), size};
  for (size_t i = 0; i < found.inverse.size(); ++i) {
    found.inverse[i] *= ramp.at(i) / factor + (1 - ramp.at(i));
  }
  return found;
}

/// Keeps the frequencies of the first pairs, as many as the config gives; the others do not rotate.
std::vector<double> proportional(const Scaling& scaling, i64 dims, std::vector<double> inverse) {
  const double share = scaling.find("partial_rotary_factor").value_or(1);
  const auto turned = static_cast<size_t>(share * static_cast<double>(dims) / 2);
  for (size_t i = turned; i < inverse.size(); ++i) inverse[i] = 0;
  return linear(std::move(inverse), scaling.find("factor").value_or(1));
}

double longrope_attention_factor(const Scaling& scaling, bool is_long) {
  if (const auto given = scaling.find(is_long ? "long_mscale" : "short_mscale")) return *given;
  if (const auto given = scaling.find("attention_factor")) return *given;
  const double factor = scaling.stretch();
  return factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(scaling.trained()));
}

RopeFrequencies longrope(const Scaling& scaling, i64 dims, double theta, i64 length) {
  const bool is_long = static_cast<double>(length) > scaling.trained();
  RopeFrequencies found{plain(dims, theta), longrope_attention_factor(scaling, is_long)};
  const auto factors = scaling.list(is_long ? "long_factor" : "short_factor", found.inverse.size());
  for (size_t i = 0; i < found.inverse.size(); ++i) found.inverse[i] /= factors[i];
  return found;
}

}  // namespace

RopeFrequencies rope_frequencies(const ModelConfig& config, std::span<const std::string> paths,
                                 i64 rotary_dims, double theta, i64 length,
                                 std::optional<double> yarn_factor) {
  const Scaling scaling(config, paths);
  const std::string type = scaling.type();
  if (type == "yarn") return yarn(scaling, rotary_dims, theta, yarn_factor);
  if (type == "longrope") return longrope(scaling, rotary_dims, theta, length);
  if (type == "dynamic") {
    return {plain(rotary_dims, stretched_theta(scaling, rotary_dims, theta, length)), 1};
  }
  const auto inverse = plain(rotary_dims, theta);
  if (type == "default") return {inverse, 1};
  if (type == "linear") return {linear(inverse, scaling.number("factor")), 1};
  if (type == "proportional") return {proportional(scaling, rotary_dims, inverse), 1};
  if (type == "llama3") return {llama3(scaling, inverse), 1};
  scaling.refuse(type);
}

double yarn_score_factor(const ModelConfig& config) {
  const Scaling scaling(config, Rope().scaling);
  const double all_dims = scaling.find("mscale_all_dim").value_or(0);
  if (scaling.type() == "default" || all_dims == 0) return 1;
  const double mscale = yarn_mscale(scaling.number("factor"), all_dims);
  return mscale * mscale;
}

}  // namespace shardtool::ops

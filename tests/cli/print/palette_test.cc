#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "cli/print/html/page.h"

namespace shardtool::cli {
namespace {

using Colour = std::array<double, 3>;

/// Red, green and blue of linear light, 0 to 1, of "#0072b2".
Colour linear(const std::string& code) {
  Colour colour{};
  for (size_t i = 0; i < colour.size(); ++i) {
    const double value = std::stoi(code.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    colour.at(i) = value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  }
  return colour;
}

using Matrix = std::array<Colour, 3>;

Colour product(const Matrix& matrix, const Colour& colour) {
  Colour result{};
  for (size_t row = 0; row < result.size(); ++row) {
    for (size_t i = 0; i < colour.size(); ++i)
      result.at(row) += matrix.at(row).at(i) * colour.at(i);
  }
  return result;
}

/// CIE L*a*b* for the white D65.
Colour lab(const Colour& rgb) {
  constexpr Matrix kToXyz{{{0.4124564, 0.3575761, 0.1804375},
                           {0.2126729, 0.7151522, 0.0721750},
                           {0.0193339, 0.1191920, 0.9503041}}};
  constexpr Colour kWhite{0.95047, 1, 1.08883};
  Colour f = product(kToXyz, rgb);
  for (size_t i = 0; i < f.size(); ++i) {
    const double t = f.at(i) / kWhite.at(i);
    f.at(i) = t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116;
  }
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

struct Vision {
  std::string name;
  Matrix matrix;
};

/// Machado, Oliveira and Fernandes 2009, severity 1.0.
std::vector<Vision> visions() {
  return {{"all colours", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}},
          {"protan",
           {{{0.152286, 1.052583, -0.204868},
             {0.114503, 0.786281, 0.099216},
             {-0.003882, -0.048116, 1.051998}}}},
          {"deutan",
           {{{0.367322, 0.860646, -0.227968},
             {0.280085, 0.672501, 0.047413},
             {-0.011820, 0.042940, 0.968881}}}},
          {"tritan",
           {{{1.255528, -0.076749, -0.178779},
             {-0.078411, 0.930809, 0.147602},
             {0.004733, 0.691367, 0.303900}}}}};
}

double distance(const std::string& a, const std::string& b, const Matrix& vision) {
  const auto seen = [&](const std::string& code) {
    Colour colour = product(vision, linear(code));
    for (double& channel : colour) channel = std::clamp(channel, 0.0, 1.0);
    return lab(colour);
  };
  const Colour first = seen(a), second = seen(b);
  return std::hypot(first[0] - second[0], first[1] - second[1], first[2] - second[2]);
}

/// The colours of charts and of the paper in the `scheme`-th definition of a page's style.
std::vector<std::string> palette(const std::string& page, int scheme) {
  size_t begin = page.find("--ink:");
  for (int i = 0; i < scheme; ++i) begin = page.find("--ink:", begin + 1);
  std::vector<std::string> colours;
  std::vector<std::string> names{"--paper:"};
  for (int i = 0; i < 9; ++i) names.push_back(fmt::format("--c{}:", i));
  constexpr size_t kCode = 7;  // #rrggbb
  for (const std::string& name : names)
    colours.push_back(page.substr(page.find(name, begin) + name.size(), kCode));
  return colours;
}

TEST_CASE("the colour-blind tell the colours of a page apart, on light and on dark paper") {
  constexpr double kLeast = 12;  // 2.3 is the least difference that is seen side by side
  const std::string page = Page("colours").take("{}");
  for (const int scheme : {0, 1}) {
    const std::vector<std::string> colours = palette(page, scheme);
    for (const Vision& vision : visions()) {
      for (size_t a = 0; a < colours.size(); ++a) {
        for (size_t b = 0; b < a; ++b) {
          CAPTURE(vision.name);
          CAPTURE(colours[a]);
          CAPTURE(colours[b]);
          CHECK(distance(colours[a], colours[b], vision.matrix) >= kLeast);
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardtool::cli

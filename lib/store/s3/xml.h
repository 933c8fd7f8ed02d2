#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::store::s3 {

/// Element of an XML document without its attributes.
struct XmlElement {
  std::string name;
  std::string text;  ///< between its tags, without that of its children
  std::vector<XmlElement> children;

  /// First child of this name, or null.
  const XmlElement* find(std::string_view child) const;
  /// Text of the first child of this name; empty without one.
  std::string value(std::string_view child) const;
};

/// Reads the root element of an answer: elements, text, character references and CDATA; comments,
/// declarations and attributes are skipped, and no entity is defined. Throws kMalformed for text
/// that is not well-formed or nested more than 16 deep.
XmlElement parse_xml(std::string_view text);

/// Whole number in an answer; -1 for any other text.
i64 number_of(std::string_view text);

/// Escapes & < > in a text.
std::string xml_escaped(std::string_view text);

}  // namespace shardtool::store::s3

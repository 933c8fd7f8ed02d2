// The JSON of a safetensors header. The last byte is the number of bytes of data in the file.
#include <vector>

#include "lib/format/safetensors/safetensors.h"
#include "tests/fuzz/property.h"
#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {
namespace {

namespace st = format::safetensors;

/// Checks that the tensors tile the data and each has the bytes of its shape.
void check_tiling(const st::Header& header, i64 data_bytes) {
  i64 end = 0;
  for (const st::Entry& entry : header.entries) {
    holds(entry.begin == end, "a hole or an overlap was accepted");
    holds(byte_size(entry.dtype, entry.shape) == entry.end - entry.begin,
          "a tensor of another size was accepted");
    end = entry.end;
  }
  holds(end == data_bytes, "bytes beside the tensors were accepted");
}

bool same(const std::vector<st::Entry>& a, const std::vector<st::Entry>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape && x.begin == y.begin &&
           x.end == y.end;
  });
}

/// Checks that a header is the same after writing and reading it again.
void check_written_again(const st::Header& header, i64 data_bytes) {
  const std::string text = st::write_header(header.entries, header.metadata, 8);
  const auto again = st::parse_header(std::string_view(text).substr(8),
                                      static_cast<i64>(text.size()) + data_bytes, "again");
  holds(same(again.entries, header.entries), "written and read again, tensors differ");
  holds(again.metadata == header.metadata, "written and read again, metadata differ");
  holds(again.warnings.empty(), "our own header has unknown fields");
}

/// Checks that the entries, each of which has a space in it, are read by JsonReader as they are
/// read directly. Inside a name a quote is escaped, so that only entries have the text.
void check_spelling(const st::Header& header, i64 data_bytes) {
  constexpr std::string_view kUsual = R"({"dtype")", kSpaced = R"({ "dtype")";
  std::string text = st::write_header(header.entries, header.metadata, 1);
  for (size_t at = 0; (at = text.find(kUsual, at)) != text.npos; at += kSpaced.size())
    text.replace(at, kUsual.size(), kSpaced);
  const auto again = st::parse_header(std::string_view(text).substr(8),
                                      static_cast<i64>(text.size()) + data_bytes, "spaced");
  holds(same(again.entries, header.entries), "entries with spaces differ");
}

/// True if a survey, which continues after problems, reports at least one.
bool survey_objects(std::string_view json, i64 file_size) {
  int problems = 0;
  const auto surveyed = accepted(
      [&] { return st::parse_header(json, file_size, "f", [&](format::Problem) { ++problems; }); });
  return !surveyed || problems > 0;
}

}  // namespace

void header(std::string_view input) {
  if (input.empty()) return;
  const i64 data_bytes = static_cast<unsigned char>(input.back());
  const std::string_view json = input.substr(0, input.size() - 1);
  const i64 file_size = 8 + static_cast<i64>(json.size()) + data_bytes;
  const auto read = accepted([&] { return st::parse_header(json, file_size, "f"); });
  holds(survey_objects(json, file_size) == !read, "opening and surveying disagree");
  if (!read) return;
  check_tiling(*read, data_bytes);
  check_written_again(*read, data_bytes);
  check_spelling(*read, data_bytes);
}

}  // namespace shardtool::fuzz

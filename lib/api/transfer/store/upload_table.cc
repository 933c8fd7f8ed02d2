#include "lib/api/transfer/store/upload_table.h"

#include <algorithm>

#include "lib/base/json_reader.h"
#include "lib/base/json_writer.h"
#include "lib/store/s3/upload.h"

namespace shardtool::api {
namespace {

using store::s3::PartedObject;

constexpr int kTableDepth = 6;

/// Parts as [bytes, count] of those that follow each other with one size.
void write_parts(JsonWriter& json, const std::vector<i64>& parts) {
  json.key("parts").begin_array();
  for (size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    while (end < parts.size() && parts[end] == parts[begin]) ++end;
    json.begin_array().value(parts[begin]).value(static_cast<i64>(end - begin)).end_array();
  }
  json.end_array();
}

}  // namespace

std::string UploadTable::to_text() const {
  std::string text;
  JsonWriter json(text, kJsonCompact);
  json.begin_object()
      .field("run", run)
      .field("about", about)
      .field("copies", copies)
      .key("objects")
      .begin_array();
  for (const PartedObject& object : objects) {
    json.begin_object().field("name", object.url.key.substr(object.url.key.rfind('/') + 1));
    json.field("upload", object.upload);
    write_parts(json, object.parts);
    json.end_object();
  }
  json.end_array().end_object();
  return text;
}

bool UploadTable::has_same_uploads(const UploadTable& other) const {
  return std::ranges::equal(objects, other.objects, {}, &PartedObject::upload,
                            &PartedObject::upload);
}

UploadTable parse_uploads(const std::string& text, const std::string& prefix) {
  UploadTable table;
  JsonReader in(text, {prefix, ErrorCode::kManifestInvalid}, kTableDepth);
  const auto read_parts = [&](std::vector<i64>& parts) {
    in.begin_array();
    while (in.next_element()) {
      std::vector<i64> pair;
      in.begin_array();
      while (in.next_element()) pair.push_back(in.integer());
      const bool is_good = pair.size() == 2 && pair[0] > 0 && pair[1] > 0 &&
                           pair[1] <= store::s3::kMostParts - std::ssize(parts);
      if (!is_good) throw in.error("these are no parts", "another list", "[bytes, count]");
      parts.insert(parts.end(), static_cast<size_t>(pair[1]), pair[0]);
    }
  };
  const auto read_objects = [&] {
    in.begin_array();
    while (in.next_element()) {
      PartedObject& object = table.objects.emplace_back();
      in.object({{"name", [&] { object.url = store::s3::parse_url(prefix + "/" + in.string()); }},
                 {"upload", [&] { object.upload = in.string(); }},
                 {"parts", [&] { read_parts(object.parts); }}});
    }
  };
  in.object({{"run", [&] { table.run = in.string(); }},
             {"about", [&] { table.about = in.string(); }},
             {"copies", [&] { table.copies = in.boolean(); }},
             {"objects", read_objects}});
  in.finish();
  return table;
}

}  // namespace shardtool::api

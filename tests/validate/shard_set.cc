#include "tests/validate/shard_set.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

namespace shardtool::test {
namespace {

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void edit_json(const std::string& path, const std::function<void(nlohmann::json&)>& edit) {
  auto document = nlohmann::json::parse(read_all(path));
  edit(document);
  std::ofstream(path, std::ios::binary) << document.dump();
}

}  // namespace

ShardRows ShardRows::rows_in(const std::vector<i64>& order) const {
  ShardRows result{{}, std::ssize(order), columns, dtype};
  const i64 width = columns * element();
  for (const i64 row : order) {
    const auto begin = bytes.begin() + row * width;
    result.bytes.insert(result.bytes.end(), begin, begin + width);
  }
  return result;
}

ShardRows ShardRows::columns_in(const std::vector<i64>& order) const {
  return transposed().rows_in(order).transposed();
}

ShardRows ShardRows::transposed() const {
  ShardRows result{Bytes(bytes.size()), columns, rows, dtype};
  for (i64 r = 0; r < rows; ++r) {
    for (i64 c = 0; c < columns; ++c) {
      std::memcpy(result.at(c, r), bytes.data() + (r * columns + c) * element(),
                  static_cast<size_t>(element()));
    }
  }
  return result;
}

void ShardRows::add_to_bits(i64 row, i64 column, i64 steps) {
  std::uint64_t value = 0;
  std::memcpy(&value, at(row, column), static_cast<size_t>(element()));
  set_bits(row, column, value + static_cast<std::uint64_t>(steps));
}

void ShardRows::set_bits(i64 row, i64 column, std::uint64_t value) {
  std::memcpy(at(row, column), &value, static_cast<size_t>(element()));
}

ShardRows zeros(ShardRows rows) {
  std::fill(rows.bytes.begin(), rows.bytes.end(), std::uint8_t{0});
  return rows;
}

std::vector<i64> exchanged(i64 n, i64 a, i64 b, i64 size) {
  std::vector<i64> order = range(0, n);
  std::swap_ranges(order.begin() + a, order.begin() + a + size, order.begin() + b);
  return order;
}

std::vector<i64> range(i64 begin, i64 end) {
  std::vector<i64> numbers(static_cast<size_t>(end - begin));
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

ShardSet::ShardSet(std::string folder)
    : folder_(std::move(folder)),
      manifest_(format::parse_manifest(read_all(folder_ + "/manifest.json"), folder_)) {}

const format::TensorRecord& ShardSet::tensor(const std::string& name) const {
  for (const auto& record : manifest_.tensors) {
    if (record.name == name) return record;
  }
  throw std::logic_error("no tensor " + name);
}

const format::ShardRecord& ShardSet::record(const std::string& name, i64 rank) const {
  for (const auto& shard : tensor(name).shards) {
    if (shard.rank == rank) return shard;
  }
  throw std::logic_error(name + " is not on that rank");
}

std::vector<i64> ShardSet::ranks_of(const std::string& name) const {
  std::vector<i64> ranks;
  for (const auto& shard : tensor(name).shards) ranks.push_back(shard.rank);
  return ranks;
}

index::Region ShardSet::region(const std::string& name, i64 rank) const {
  const auto& whole = tensor(name);
  return whole.holders->region(static_cast<int>(&record(name, rank) - whole.shards.data()));
}

std::vector<std::string> ShardSet::tensors() const {
  std::vector<std::string> names;
  for (const auto& record : manifest_.tensors) names.push_back(record.name);
  return names;
}

ShardRows ShardSet::read(const std::string& name, i64 rank) const {
  const auto& shard = record(name, rank);
  ShardRows rows;
  rows.dtype = tensor(name).dtype;
  const Shape shape = index::local_shape(region(name, rank));
  rows.rows = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    (d == 0 || d + 1 < shape.size() ? rows.rows : rows.columns) *= shape[d];
  }
  rows.bytes.resize(static_cast<size_t>(shard.bytes));
  std::ifstream in(file(rank), std::ios::binary);
  in.seekg(shard.offset);
  in.read(reinterpret_cast<char*>(rows.bytes.data()), shard.bytes);
  return rows;
}

void ShardSet::write(const std::string& name, i64 rank, const ShardRows& rows) const {
  const auto& shard = record(name, rank);
  if (std::ssize(rows.bytes) != shard.bytes) throw std::logic_error(name + " has another size");
  std::fstream out(file(rank), std::ios::in | std::ios::out | std::ios::binary);
  out.seekp(shard.offset);
  out.write(reinterpret_cast<const char*>(rows.bytes.data()), shard.bytes);
}

void ShardSet::change(const std::string& name, i64 rank,
                      const std::function<ShardRows(ShardRows)>& change) const {
  write(name, rank, change(read(name, rank)));
}

void ShardSet::change_all(const std::string& name,
                          const std::function<ShardRows(ShardRows)>& with) const {
  for (const i64 rank : ranks_of(name)) change(name, rank, with);
}

void ShardSet::exchange(const std::string& name, i64 a, i64 b) const {
  const ShardRows of_a = read(name, a);
  write(name, a, read(name, b));
  write(name, b, of_a);
}

void ShardSet::exchange(const std::string& a, const std::string& b, i64 rank) const {
  const ShardRows of_a = read(a, rank);
  write(a, rank, read(b, rank));
  write(b, rank, of_a);
}

std::string ShardSet::file(i64 rank) const {
  for (const auto& entry : manifest_.ranks) {
    if (entry.rank == rank) {
      return folder_ + "/" + manifest_.files.at(static_cast<size_t>(entry.files.front())).name;
    }
  }
  throw std::logic_error("no such rank");
}

void ShardSet::edit_manifest(const std::function<void(nlohmann::json&)>& edit) const {
  edit_json(folder_ + "/manifest.json", edit);
}

void ShardSet::edit_config(const std::function<void(nlohmann::json&)>& edit) const {
  edit_json(folder_ + "/config.json", edit);
}

void ShardSet::edit_header(i64 rank, const std::function<void(nlohmann::json&)>& edit) const {
  std::string content = read_all(file(rank));
  std::uint64_t length = 0;
  std::memcpy(&length, content.data(), sizeof length);
  auto header = nlohmann::json::parse(content.substr(sizeof length, length));
  edit(header);
  std::string text = header.dump();
  if (text.size() > length) throw std::logic_error("the header grew");
  text.resize(length, ' ');
  content.replace(sizeof length, length, text);
  std::ofstream(file(rank), std::ios::binary) << content;
}

ShardRows below_each_other(const ShardSet& shards, const std::string& name) {
  ShardRows all = shards.read(name, 0);
  for (i64 rank = 1; rank < shards.ranks(); ++rank) {
    const ShardRows more = shards.read(name, rank);
    all.bytes.insert(all.bytes.end(), more.bytes.begin(), more.bytes.end());
    all.rows += more.rows;
  }
  return all;
}

}  // namespace shardtool::test

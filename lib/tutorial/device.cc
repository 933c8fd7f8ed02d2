#include "lib/tutorial/device.h"

#include <array>
#include <cstring>


namespace shardtool::tutorial {
namespace {

using Extents = std::array<i64, 2>;

template <Number T>
std::vector<Matrix<T>> decoded(const std::vector<std::string>& messages) {
  std::vector<Matrix<T>> matrices;
  matrices.reserve(messages.size());
  for (const std::string& message : messages) matrices.push_back(tutorial::decoded<T>(message));
  return matrices;
}

}  // namespace

template <Number T>
std::string encoded(const Matrix<T>& matrix) {
  const Extents extents{matrix.rows(), matrix.columns()};
  const std::span<const T> values = matrix.values();
  std::string bytes(sizeof extents + values.size_bytes(), '\0');
  std::memcpy(bytes.data(), extents.data(), sizeof extents);
  if (!values.empty()) {
    std::memcpy(bytes.data() + sizeof extents, values.data(), values.size_bytes());
  }
  return bytes;
}

template <Number T>
Matrix<T> decoded(std::string_view bytes) {
  Extents extents{};
  if (bytes.size() < sizeof extents)
    throw Error(ErrorCode::kInternal, "half a matrix was received");
  std::memcpy(extents.data(), bytes.data(), sizeof extents);
  const std::string_view payload = bytes.substr(sizeof extents);
  std::vector<T> values(payload.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), payload.data(), values.size() * sizeof(T));
  return Matrix<T>(extents[0], extents[1], std::move(values));
}

template <Number T>
int Device<T>::device_id() const {
  return comm_.rank();
}

template <Number T>
int Device<T>::num_devices() const {
  return comm_.size();
}

template <Number T>
void Device<T>::barrier() {
  comm_.barrier();
}

template <Number T>
void Device<T>::send(int to, const Matrix<T>& matrix) {
  comm_.send(to, encoded(matrix));
}

template <Number T>
Matrix<T> Device<T>::receive(int from) {
  return tutorial::decoded<T>(comm_.receive(from));
}

template <Number T>
comm::PendingSend Device<T>::send_async(int to, const Matrix<T>& matrix) {
  return comm_.send_async(to, encoded(matrix));
}

template <Number T>
void Device<T>::send_end(int to) {
  comm_.send(to, "");
}

template <Number T>
std::optional<Matrix<T>> Device<T>::receive_next(int from) {
  const std::string bytes = comm_.receive(from);
  if (bytes.empty()) return std::nullopt;
  return tutorial::decoded<T>(bytes);
}

template <Number T>
Matrix<T> Device<T>::all_gather(const Matrix<T>& part, Axis axis) {
  return joined<T>(decoded<T>(comm_.all_gather(encoded(part))), axis);
}

template <Number T>
Matrix<T> Device<T>::all_reduce(const Matrix<T>& summand) {
  Matrix<T> sum = summand;
  comm::all_reduce(comm_, sum.values(), std::plus<T>());
  return sum;
}

template <Number T>
Matrix<T> Device<T>::reduce_scatter(const Matrix<T>& summand, Axis axis, const Parts& parts) {
  // Ordered by part, so that every device's share is contiguous.
  std::vector<T> values;
  std::vector<size_t> counts;
  for (const Interval& part : parts) {
    const Matrix<T> share = slice(summand, axis, part);
    values.insert(values.end(), share.values().begin(), share.values().end());
    counts.push_back(share.values().size());
  }
  const i64 size = parts[device_id()].size();
  const bool along_rows = axis == Axis::kRows;
  return Matrix<T>(along_rows ? size : summand.rows(), along_rows ? summand.columns() : size,
                   comm::reduce_scatter(comm_, std::span<const T>(values), counts, std::plus<T>()));
}

template <Number T>
Matrix<T> Device<T>::all_to_all(const Matrix<T>& matrix, Axis axis, const Parts& parts) {
  std::vector<std::string> messages;
  for (const Interval& part : parts) messages.push_back(encoded(slice(matrix, axis, part)));
  return joined<T>(decoded<T>(comm_.all_to_all(std::move(messages))), axis);
}

template <Number T>
std::vector<Matrix<T>> Device<T>::census(const Matrix<T>& held) {
  return decoded<T>(comm_.all_gather(encoded(held)));
}

template <Number T>
std::vector<std::string> Device<T>::census(const std::string& text) {
  return comm_.all_gather(text);
}

template <Number T>
Counts Device<T>::counts_since(const comm::Counters& before) const {
  const auto counted = [&](comm::Operation operation, i64 matrices_per_call) {
    const comm::Count& then = before[operation];
    const comm::Count& now = comm_.counters()[operation];
    const i64 calls = now.calls - then.calls;
    const i64 extents = calls * matrices_per_call * i64{sizeof(Extents)};
    return engine::Counted{calls, (now.bytes - then.bytes - extents) / i64{sizeof(T)}};
  };
  using comm::Operation;
  return {.all_gather = counted(Operation::kAllGather, 1),
          .all_reduce = counted(Operation::kAllReduce, 0),
          .reduce_scatter = counted(Operation::kReduceScatter, 0),
          .all_to_all = counted(Operation::kAllToAll, num_devices()),
          .send = counted(Operation::kSend, 1)};
}

template std::string encoded(const Matrix<Field>&);
template std::string encoded(const Matrix<double>&);
template std::string encoded(const Matrix<float>&);
template Matrix<Field> decoded(std::string_view);
template Matrix<double> decoded(std::string_view);
template Matrix<float> decoded(std::string_view);
template class Device<Field>;
template class Device<double>;
template class Device<float>;

}  // namespace shardtool::tutorial

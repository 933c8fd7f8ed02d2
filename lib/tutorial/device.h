#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/comm/communicator.h"
#include "lib/tutorial/counts.h"
#include "lib/tutorial/placement.h"

namespace shardtool::tutorial {

/// A matrix as bytes: rows and columns as 64-bit integers, then the values, all in the byte order
/// of the machine. Only processes of one launch read it.
template <Number T>
std::string encoded(const Matrix<T>& matrix);
/// Throws kInternal when the bytes are not those of a matrix.
template <Number T>
Matrix<T> decoded(std::string_view bytes);

/// One device of a launch, for matrices: the tutorial's interface over any communicator. Every
/// device calls the same collectives in the same order. Sums are in the order of devices on every
/// engine, so that their bits are the same. What the communicator throws goes through.
template <Number T>
class Device {
 public:
  /// `comm` must outlive the device.
  explicit Device(comm::Communicator& comm) : comm_(comm) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int device_id() const;
  int num_devices() const;
  void barrier();

  void send(int to, const Matrix<T>& matrix);
  Matrix<T> receive(int from);
  /// A send that goes on while this device computes; errors come from the future's wait().
  comm::PendingSend send_async(int to, const Matrix<T>& matrix);

  /// Ends a stream of sends: `receive_next` of the other side returns nothing.
  void send_end(int to);
  /// The next matrix of a stream, or nothing at its end.
  std::optional<Matrix<T>> receive_next(int from);

  /// Every device's part side by side along an axis; the parts may differ in size.
  Matrix<T> all_gather(const Matrix<T>& part, Axis axis);
  /// The sum over the devices. Throws kInternal where they give different sizes. Virtual, so that a
  /// fault can be planted in it.
  virtual Matrix<T> all_reduce(const Matrix<T>& summand);
  /// Of the sum over the devices, this one's part along an axis.
  Matrix<T> reduce_scatter(const Matrix<T>& summand, Axis axis, const Parts& parts);
  /// Part j of `matrix` goes to device j; what came, side by side in the order of the sources.
  Matrix<T> all_to_all(const Matrix<T>& matrix, Axis axis, const Parts& parts);

  /// What every device holds, in their order.
  std::vector<Matrix<T>> census(const Matrix<T>& held);
  std::vector<std::string> census(const std::string& text);

  /// What the communicator has counted so far: a moment to count from.
  const comm::Counters& counters() const { return comm_.counters(); }
  /// What this device gave since then. The extents that go with every matrix are no numbers of it.
  /// Requires that since then matrices alone went through the device.
  Counts counts_since(const comm::Counters& before) const;

 private:
  comm::Communicator& comm_;
};

}  // namespace shardtool::tutorial

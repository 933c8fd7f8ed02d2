#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/comm/communicator.h"
#include "lib/comm/reduce.h"
#include "lib/tutorial/placement.h"
#include "lib/tutorial/proof/counts.h"

namespace shardtool::tutorial {

/// Serialises a matrix: rows and columns as 64-bit integers, then the values, all in native byte
/// order. Only for processes of one launch.
template <Number T>
std::string encoded(const Matrix<T>& matrix);
/// Throws kInternal if the bytes are not those of a matrix.
template <Number T>
Matrix<T> decoded(std::string_view bytes);

/// One device of a launch: the tutorial's matrix interface to any communicator. Every device calls
/// the same collectives in the same order. Sums are in device order on every engine, so that their
/// bits are the same. Errors of the communicator are passed on.
template <Number T>
class Device {
 public:
  /// `comm` must outlive the device, like what `product` computes with.
  explicit Device(comm::Communicator& comm, Product<T> product = times<T>)
      : comm_(comm), product_(std::move(product)) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int device_id() const;
  int num_devices() const;
  void barrier();
  /// Multiplies matrices on this device.
  const Product<T>& product() const { return product_; }

  void send(int to, const Matrix<T>& matrix);
  Matrix<T> receive(int from);
  /// Sends while this device computes; errors come from the future's wait().
  comm::PendingSend send_async(int to, const Matrix<T>& matrix);

  /// Ends a stream of sends: `receive_next` of the receiver returns nullopt.
  void send_end(int to);
  /// Returns the next matrix of a stream, or nullopt at its end.
  std::optional<Matrix<T>> receive_next(int from);

  /// Joins the devices' parts along an axis, in device order; the parts may differ in size.
  Matrix<T> all_gather(const Matrix<T>& part, Axis axis);
  /// Returns the sum over the devices. Throws kInternal if sizes differ. Virtual, for fault
  /// injection.
  virtual Matrix<T> all_reduce(const Matrix<T>& summand);
  /// Combines the devices' elements by op(a, b) in device order, for example with std::multiplies.
  /// Throws kInternal if sizes differ.
  template <class Op>
  Matrix<T> all_reduce(const Matrix<T>& part, Op op) {
    Matrix<T> combined = part;
    comm::all_reduce(comm_, combined.values(), op);
    return combined;
  }
  /// Returns this device's part along an axis of the sum over the devices.
  Matrix<T> reduce_scatter(const Matrix<T>& summand, Axis axis, const Parts& parts);
  /// Sends part j of `matrix` to device j; joins the received parts in source order.
  Matrix<T> all_to_all(const Matrix<T>& matrix, Axis axis, const Parts& parts);

  /// Returns every device's content, in device order.
  std::vector<Matrix<T>> census(const Matrix<T>& held);
  std::vector<std::string> census(const std::string& text);

  /// Communicator counters so far, a reference point for counts_since.
  const comm::Counters& counters() const { return comm_.counters(); }
  /// Counts of this device since then, without the extents sent with every matrix. Requires that
  /// only matrices were communicated since then.
  Counts counts_since(const comm::Counters& before) const;

 private:
  comm::Communicator& comm_;
  Product<T> product_;
};

}  // namespace shardtool::tutorial

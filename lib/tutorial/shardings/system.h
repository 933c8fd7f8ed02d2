#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "lib/tutorial/device.h"
#include "lib/tutorial/layers/layers.h"

namespace shardtool::tutorial {

/// Returns the next input, or nullopt at the end of the stream.
template <Number T>
using InputStream = std::function<std::optional<Matrix<T>>()>;
template <Number T>
using OutputStream = std::function<void(const Matrix<T>&)>;

/// MatrixPlacement of each parameter, by name.
using Placements = std::map<std::string, MatrixPlacement>;

/// One way to distribute a model of linear layers with ReLUs between them. Every device runs the
/// same program on its own parts: it passes its part of x to forward() and gets its part of y.
/// Gradients have the placements of their parameters.
///
/// forward() saves the inputs of backward(); infer() and inference_loop() do not.
template <Number T>
class System {
 public:
  explicit System(Device<T>& device) : device_(device) {}
  virtual ~System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  int device_id() const { return device_.device_id(); }
  int num_devices() const { return device_.num_devices(); }

  /// Keeps this device's part of every parameter of the whole model. Throws the errors of layers_of
  /// and parts_of.
  virtual void load_checkpoint(const Parameters<T>& whole);
  /// Parameters kept by load_checkpoint.
  const Parameters<T>& held() const { return held_; }
  const Placements& placements() const { return placements_; }

  /// Placements of a batch of this many rows: of x, and of y, dL/dy and dL/dx. They throw
  /// kEmptyShard if a device would have no rows to work on.
  virtual MatrixPlacement input(i64 batch) const = 0;
  virtual MatrixPlacement output(i64 batch) const = 0;
  virtual MatrixPlacement input_gradient(i64 batch) const { return input(batch); }

  Matrix<T> forward(const Matrix<T>& x);
  Matrix<T> infer(const Matrix<T>& x) { return run(x).y; }
  /// Returns the gradients of <y, g> by name, and "dx", for the last forward(). Throws kInternal
  /// before a forward().
  Parameters<T> backward(const Matrix<T>& g);

  /// Device 0 reads inputs, all devices process them, device 0 writes the outputs in input order.
  /// Returns on every device when device 0's inputs end; the other devices' streams are not used.
  /// O(1) inputs are in memory.
  virtual void inference_loop(const InputStream<T>& input_stream,
                              const OutputStream<T>& output_stream);

 protected:
  virtual Placements place(const Parameters<T>& whole) const = 0;
  virtual Pass<T> run(const Matrix<T>& x) = 0;
  virtual Parameters<T> pull_back(const Tape<T>& tape, const Matrix<T>& g) = 0;

  const Matrix<T>& weights(i64 layer) const { return held_.at(weights_name(layer)); }
  const Matrix<T>* bias(i64 layer) const { return find(held_, bias_name(layer)); }

  Device<T>& device_;

 private:
  std::optional<Matrix<T>> share_out(const std::optional<Matrix<T>>& x);
  std::optional<Matrix<T>> collect(const Matrix<T>& part, i64 batch);

  Parameters<T> held_;
  Placements placements_;
  std::optional<Tape<T>> tape_;
};

/// Sizes of a two-layer model.
struct TwoLayers {
  i64 in = 0;
  i64 hidden = 0;
  i64 out = 0;
};
/// Throws kUnsupported unless there are exactly two layers, and the errors of layers_of.
template <Number T>
TwoLayers two_layers(const Parameters<T>& whole);

/// Returns `placement` for every parameter.
template <Number T>
Placements all_placed(const Parameters<T>& whole, const MatrixPlacement& placement);

}  // namespace shardtool::tutorial

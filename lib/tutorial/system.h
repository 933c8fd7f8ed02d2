#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "lib/tutorial/device.h"
#include "lib/tutorial/layers.h"

namespace shardtool::tutorial {

/// The next input, or nothing at the end of the stream.
template <Number T>
using InputStream = std::function<std::optional<Matrix<T>>()>;
template <Number T>
using OutputStream = std::function<void(const Matrix<T>&)>;

/// Where each parameter lies, by name.
using Placements = std::map<std::string, Placement>;

/// One way to spread a model of linear layers with ReLUs between them over devices. Every device
/// runs the same program on its own parts: it gives forward() its part of x and gets its part of y.
/// Gradients lie like their parameters.
///
/// forward() keeps what backward() needs; infer() and inference_loop() keep nothing.
template <Number T>
class System {
 public:
  explicit System(Device<T>& device) : device_(device) {}
  virtual ~System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  int device_id() const { return device_.device_id(); }
  int num_devices() const { return device_.num_devices(); }

  /// Keeps this device's part of every parameter of the whole model.
  /// Throws what layers_of and parts_of throw.
  virtual void load_checkpoint(const Parameters<T>& whole);
  /// What load_checkpoint kept.
  const Parameters<T>& held() const { return held_; }
  const Placements& placements() const { return placements_; }

  /// Where a batch of this many rows has to lie, and y, dL/dy and dL/dx. They throw kEmptyShard
  /// where a device would have no rows to work on.
  virtual Placement input(i64 batch) const = 0;
  virtual Placement output(i64 batch) const = 0;
  virtual Placement input_gradient(i64 batch) const { return input(batch); }

  Matrix<T> forward(const Matrix<T>& x);
  Matrix<T> infer(const Matrix<T>& x) { return run(x).y; }
  /// The gradients of <y, g> by name, and "dx", for the last forward().
  /// Throws kInternal before a forward().
  Parameters<T> backward(const Matrix<T>& g);

  /// Device 0 takes inputs, all devices work on them, device 0 gives the outputs in the order of
  /// the inputs. Returns on every device when device 0's inputs end; the other devices' streams are
  /// not touched. O(1) inputs are in memory.
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

/// The sizes of a model of two layers.
struct TwoLayers {
  i64 in = 0;
  i64 hidden = 0;
  i64 out = 0;
};
/// Throws kUnsupported unless there are exactly two layers, and what layers_of throws.
template <Number T>
TwoLayers two_layers(const Parameters<T>& whole);

/// `placement` for every parameter.
template <Number T>
Placements all_placed(const Parameters<T>& whole, const Placement& placement);

}  // namespace shardtool::tutorial

#pragma once

#include <map>
#include <memory>
#include <vector>

#include "lib/tutorial/shardings/pipeline_schedule.h"
#include "lib/tutorial/shardings/system.h"

namespace shardtool::tutorial {

/// Pipeline of stages: each device has consecutive layers, sends activations to the next device and
/// gradients to the previous one. A batch is cut into microbatches by rows.
///
///     device 0: x --layers--> h ==send==> device 1: --layers--> h ==send==> ... --> y
///               dx <--layers-- dh <==send==  ...                               <-- dy
///
/// x and dx are at device 0, y and dy at the last. forward() and backward() are GPipe's two halves;
/// step() runs them in any schedule. Each microbatch takes one send over each boundary in each
/// direction. Throws kEmptyShard for fewer layers than devices or fewer rows than microbatches.
template <Number T>
class Pipeline final : public System<T> {
 public:
  /// Requires microbatches > 0.
  Pipeline(Device<T>& device, i64 microbatches) : System<T>(device), microbatches_(microbatches) {}

  void load_checkpoint(const Parameters<T>& whole) override;
  MatrixPlacement input(i64 batch) const override;
  MatrixPlacement output(i64 batch) const override;
  /// Keeps as many inputs in flight as there are stages.
  void inference_loop(const InputStream<T>& input_stream,
                      const OutputStream<T>& output_stream) override;

  struct Result {
    Matrix<T> y;
    Parameters<T> gradients;
    Counts forward_counts;  ///< of this device, forward passes of all microbatches
    Counts backward_counts;
    i64 most_in_flight = 0;  ///< most microbatches with activations kept on this stage
  };
  /// Runs forward and backward of one batch: `x` at device 0, `g` = dL/dy at the last.
  Result step(const Matrix<T>& x, const Matrix<T>& g, PipelineSchedule schedule);

 protected:
  Placements place(const Parameters<T>& whole) const override;
  Pass<T> run(const Matrix<T>& x) override;
  Parameters<T> pull_back(const Tape<T>& tape, const Matrix<T>& g) override;

 private:
  bool is_first() const { return this->device_id() == 0; }
  bool is_last() const { return this->device_id() == this->num_devices() - 1; }

  /// Runs microbatch i of this device's input, or the one that the previous stage sends.
  Pass<T> run_microbatch(const Matrix<T>& x, i64 i);
  /// Gradients of one microbatch; "dx" is only kept on the first stage.
  Parameters<T> pull_back_microbatch(const Tape<T>& tape, const Matrix<T>& g, i64 i);
  Matrix<T> microbatch(const Matrix<T>& whole, i64 i) const;
  void lead(const InputStream<T>& input_stream, const OutputStream<T>& output_stream);
  void follow();

  i64 microbatches_;
  std::vector<DenseLayer<T>> layers_;  ///< layers of this stage
};

}  // namespace shardtool::tutorial

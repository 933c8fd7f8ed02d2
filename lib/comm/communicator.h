#pragma once

#include <string>
#include <vector>

namespace shardtool::comm {

/// The processes of one run, as one of them sees them. All of them call the same collective
/// operations in the same order, each from one thread at a time; stopping may come from any thread.
///
/// The collectives throw kPeerLost when another process has ended or cannot be reached.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// What every process gives, in the order of ranks, in every process.
  virtual std::vector<std::string> all_gather(const std::string& mine) = 0;
  /// The same at rank 0 alone; nothing elsewhere.
  virtual std::vector<std::string> gather(const std::string& mine) = 0;

  /// Tells the others to give up what they are doing. Does not wait, and never throws.
  virtual void raise_stop() noexcept = 0;
  /// Whether some process raised a stop, or has ended. Does not wait.
  virtual bool stop_was_raised() = 0;
};

/// A process on its own.
class SoloCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::vector<std::string> all_gather(const std::string& mine) override { return {mine}; }
  std::vector<std::string> gather(const std::string& mine) override { return {mine}; }
  void raise_stop() noexcept override { stopped_ = true; }
  bool stop_was_raised() override { return stopped_; }

 private:
  bool stopped_ = false;
};

}  // namespace shardtool::comm

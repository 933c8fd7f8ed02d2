#pragma once

namespace shardtool::testing {

/// Has the system refuse every thread after the next `allowed` ones, while it lives.
class RefusedThreads {
 public:
  explicit RefusedThreads(int allowed);
  ~RefusedThreads();
  RefusedThreads(const RefusedThreads&) = delete;
  RefusedThreads& operator=(const RefusedThreads&) = delete;
};

}  // namespace shardtool::testing

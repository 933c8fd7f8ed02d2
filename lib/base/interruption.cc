#include "lib/base/interruption.h"

#include "lib/base/error.h"

namespace shardtool {

namespace {

thread_local Interruptible* current = nullptr;

}  // namespace

Interruptible::Interruptible(const std::atomic<bool>* flag, Duration patience)
    : flag_(flag), patience_(patience), outer_(current) {
  current = this;
}

Interruptible::~Interruptible() {
  current = outer_;
}

const std::atomic<bool>* interruption() {
  return current == nullptr ? nullptr : current->flag_;
}

void check_interrupted(Interruptible::Duration waited) {
  const std::atomic<bool>* const flag = interruption();
  if (flag == nullptr || !*flag) return;
  current->is_over_ = current->is_over_ || waited >= current->patience_;
  if (current->is_over_) throw Error(ErrorCode::kInterrupted, "interrupted");
}

}  // namespace shardtool

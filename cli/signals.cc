#include "cli/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <initializer_list>

namespace shardtool::cli {
namespace {

std::atomic<bool> cancel{false};
std::atomic<int> signal_number{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "only lock-free atomics may be touched in a signal handler");

void on_interrupt(int signal) {
  constexpr int kSignalled = 128;
  if (cancel.exchange(true)) ::_exit(kSignalled + signal);
  signal_number = signal;
}

}  // namespace

void prepare_process() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const bool closed = ::fcntl(fd, F_GETFD) == -1 && errno == EBADF;
    if (closed && ::open("/dev/null", O_RDONLY) != fd) ::_exit(1);
  }
}

const std::atomic<bool>* catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigemptyset(&action.sa_mask);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction inherited {};
    ::sigaction(signal, nullptr, &inherited);
    if (inherited.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
  return &cancel;
}

int caught_signal() {
  return signal_number;
}

}  // namespace shardtool::cli

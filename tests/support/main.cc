#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

/// Suppresses leaks of third-party libraries at exit (only used by LeakSanitizer).
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libcublasLt.so\n";
}

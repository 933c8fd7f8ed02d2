#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

/// What the libraries of others keep to their end (only read where leaks are looked for).
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libcublasLt.so\n";
}

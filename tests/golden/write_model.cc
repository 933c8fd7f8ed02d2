// Writes one of the small models as a checkpoint: golden_model NAME FOLDER
#include <cstdio>
#include <exception>

#include "tests/golden/models.h"

int main(int count, char** words) {
  if (count != 3) {
    std::fputs("usage: golden_model NAME FOLDER\n", stderr);
    return 2;
  }
  try {
    shardtool::golden::write_model(words[1], words[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "golden_model: %s\n", error.what());
    return 1;
  }
  return 0;
}

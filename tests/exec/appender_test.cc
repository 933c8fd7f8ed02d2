#include "lib/exec/files/appender.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "lib/store/local/file.h"
#include "tests/support/generators.h"
#include "tests/support/temp_folder.h"

/// Appends texts in pieces to files.
namespace shardtool::exec {
namespace {

constexpr i64 kMaxText = 8 << 20;

TEST_CASE("what is appended in pieces is in the file, past the page cache and through it") {
  CHECK(rc::check("files are the sum of their pieces", [] {
    const test::TempFolder folder;
    const IoMode mode = *rc::gen::element(IoMode::kAuto, IoMode::kBuffered);
    Appender appender;
    for (const char* name : {"one", "two"}) {  // the second from the front again
      store::File file = store::create_new(folder / name);
      const TargetFile target(file, mode);
      appender.begin(target);
      std::string all;
      for (i64 pieces = *gen::between(0, 5); pieces > 0; --pieces) {
        const i64 bytes = *gen::between(0, 900'000);
        std::string piece;
        for (i64 i = 0; i < bytes; ++i) piece += static_cast<char>('a' + (i * 7 + pieces) % 23);
        appender.append(piece);
        all += piece;
      }
      appender.finish();
      RC_ASSERT(store::read_text(target.path(), kMaxText) == all);
    }
  }));
}

}  // namespace
}  // namespace shardtool::exec

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "lib/format/checkpoint.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
#include "tests/support/torch_files.h"

/// Links out of the folder of a checkpoint, in formats whose writers make none.
namespace shardtool::format {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;

const std::string kSaved = SHARDTOOL_SOURCE_DIR "/tests/format/dcp/torch";

std::string torch_file() {
  const auto tensor = test::numbered_tensor("a", Dtype::kF32, {2});
  return test::torch_zip({{"a", tensor}});
}

/// Copies the checkpoint that PyTorch wrote.
void copy_saved(const std::string& folder) {
  fs::copy(kSaved, folder, fs::copy_options::recursive);
}

/// Moves a file into another folder and leaves a link to it.
void move_and_link(const fs::path& file, const TempFolder& elsewhere) {
  const fs::path target = fs::path(elsewhere.path()) / file.filename();
  fs::rename(file, target);
  fs::create_symlink(target, file);
}

}  // namespace

TEST_CASE("a torch file behind a link out of its folder is refused, unless the link is named") {
  const TempFolder elsewhere;
  const TempFolder folder;
  const std::string file = folder.write("pytorch_model.bin", torch_file());
  move_and_link(file, elsewhere);
  CHECK_ERROR(kUnsupported, open_checkpoint(folder.path()));
  CHECK(open_checkpoint(file).tensors.size() == 1);
  fs::remove(file);
  fs::create_symlink("other.bin", file);
  folder.write("other.bin", torch_file());
  CHECK(open_checkpoint(folder.path()).tensors.size() == 1);
}

TEST_CASE("the links of the Hugging Face cache are followed, in its snapshots and out of it") {
  const TempFolder hub;
  const std::string blob = "blobs/" + std::string(64, 'a');
  fs::create_directories(hub / "models--org--name/blobs");
  fs::create_directories(hub / "models--org--name/snapshots/commit");
  hub.write("models--org--name/" + blob, torch_file());
  const std::string snapshot = hub / "models--org--name/snapshots/commit";
  fs::create_symlink("../../" + blob, snapshot + "/pytorch_model.bin");
  CHECK(open_checkpoint(snapshot).tensors.size() == 1);
  const TempFolder local;
  fs::create_symlink(hub / "models--org--name/" + blob, local / "pytorch_model.bin");
  CHECK(open_checkpoint(local.path()).tensors.size() == 1);
}

TEST_CASE("a distributed checkpoint with a link out of its folder is refused") {
  const TempFolder elsewhere;
  for (const std::string name : {".metadata", "__0_0.distcp"}) {
    CAPTURE(name);
    const TempFolder folder;
    copy_saved(folder / "saved");
    CHECK_NOTHROW(open_checkpoint(folder / "saved"));
    move_and_link(folder / "saved/" + name, elsewhere);
    CHECK_ERROR(kUnsupported, open_checkpoint(folder / "saved"));
  }
  const TempFolder folder;
  copy_saved(folder / "saved");
  fs::create_directory_symlink(folder / "saved", folder / "latest");
  CHECK_NOTHROW(open_checkpoint(folder / "latest"));
}

}  // namespace shardtool::format

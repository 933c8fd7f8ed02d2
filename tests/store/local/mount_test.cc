#include "lib/store/local/mount.h"

#include <doctest/doctest.h>

#include "tests/support/temp_folder.h"

using namespace shardtool;

TEST_CASE("a folder below a mount of an object store is found by the program that shows it") {
  constexpr std::string_view kMounts =
      "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
      "30 22 0:40 / /mnt/s3 rw,nosuid - fuse mountpoint-s3 rw,user_id=0\n"
      "31 22 0:41 / /mnt/gcs rw - fuse.gcsfuse my-bucket rw\n"
      "32 22 0:42 / /mnt/juice rw - fuse.juicefs JuiceFS:x rw\n"
      "33 30 8:2 / /mnt/s3/disk rw shared:2 master:1 - xfs /dev/sdb rw\n"
      "a line of another form\n";
  CHECK(store::object_mount_in(kMounts, "/mnt/s3") == "mountpoint-s3");
  CHECK(store::object_mount_in(kMounts, "/mnt/s3/out/x") == "mountpoint-s3");
  CHECK(store::object_mount_in(kMounts, "/mnt/gcs/a") == "gcsfuse");
  for (const char* other : {"/", "/mnt", "/mnt/s3x", "/mnt/s3/disk/a", "/mnt/juice"}) {
    CHECK_FALSE(store::object_mount_in(kMounts, other));
  }
  CHECK_FALSE(store::object_mount_in("", "/mnt/s3"));
}

TEST_CASE("a folder of this machine is no mount of an object store") {
  const test::TempFolder folder;
  CHECK_FALSE(store::object_mount(folder.path()));
  CHECK_FALSE(store::object_mount(folder / "missing"));
}

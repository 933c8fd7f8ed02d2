#include "lib/api/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <thread>

#include "kernels/device/accelerator.h"
#include "kernels/device/device.h"
#include "kernels/native/cublaslt.h"
#include "lib/api/store_doctor.h"
#include "lib/base/dynamic_library.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/comm/engine.h"
#include "lib/format/hugging_face/hf_cache.h"
#include "lib/store/local/file.h"
#include "lib/store/local/mount.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;

DoctorCheck system_check() {
  utsname name{};
  uname(&name);
  return {"system", fmt::format("{} {} {}", name.sysname, name.release, name.machine), true, ""};
}

DoctorCheck vector_units_check() {
  std::string units;
  const auto add = [&units](bool has, const char* unit) {
    if (has) units += (units.empty() ? "" : " ") + std::string(unit);
  };
#if defined(__x86_64__)
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(__builtin_cpu_supports("avx512f"), "avx512f");
  add(__builtin_cpu_supports("pclmul"), "pclmul");
  add(__builtin_cpu_supports("vpclmulqdq"), "vpclmulqdq");
#elif defined(__aarch64__)
  add((getauxval(AT_HWCAP) & HWCAP_PMULL) != 0, "pmull");
#endif
  return {"vector units", units.empty() ? "none known" : units, true,
          units.empty() ? "digests use tables, which are slower" : ""};
}

DoctorCheck threads_check() {
  return {"processors", std::to_string(std::thread::hardware_concurrency()), true, ""};
}

DoctorCheck memory_check() {
  const i64 page = sysconf(_SC_PAGESIZE);
  return {"memory",
          fmt::format("{} in pages of {}", format_bytes(sysconf(_SC_PHYS_PAGES) * page),
                      format_bytes(page)),
          true, ""};
}

DoctorCheck descriptors_check() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const bool enough = limit.rlim_max >= 4096;
  return {"open files", fmt::format("{} (hard limit {})", limit.rlim_cur, limit.rlim_max), enough,
          enough ? "" : "layouts of many ranks need two per file: raise it with ulimit -n"};
}

DoctorCheck space_check(const std::string& folder) {
  struct statvfs stats {};
  if (statvfs(folder.c_str(), &stats) != 0) {
    return {"free space", "unknown", false, fmt::format("{} cannot be looked at", folder)};
  }
  const i64 free = static_cast<i64>(stats.f_bavail) * static_cast<i64>(stats.f_frsize);
  return {"free space", fmt::format("{} in {}", format_bytes(free), folder), free > 0, ""};
}

DoctorCheck direct_io_check(const std::string& folder) {
  const std::string path = fmt::format("{}/.shardtool-doctor-{}", folder, getpid());
  DoctorCheck check{"direct I/O", "", true, ""};
  try {
    const store::File file = store::create_new(path);
    const store::File direct = store::open_write_direct(path);
    check.value = direct.is_open() ? "works in " + folder : "not in " + folder;
    if (!direct.is_open())
      check.advice = "files are written through the page cache, which is slower";
  } catch (const Error& error) {
    check = {"direct I/O", "unknown", false, error.message()};
  }
  ::unlink(path.c_str());
  return check;
}

/// Outputs cannot be written through programs that show an object store as a folder.
std::vector<DoctorCheck> folder_checks(const std::string& folder) {
  const auto mount = store::object_mount(folder);
  if (!mount) return {space_check(folder), direct_io_check(folder)};
  return {{"file system", *mount + " in " + folder, false,
           "outputs cannot be renamed there: write to s3://bucket/prefix instead"}};
}

/// Describes why a library is missing: the loader's message for each file, or the error's own.
std::string missing(const Error& error) {
  std::vector<std::string_view> reasons;
  for (const auto& [label, text] : error.notes()) reasons.push_back(text);
  return fmt::format(
      "none: {}", reasons.empty() ? error.message() : fmt::format("{}", fmt::join(reasons, "; ")));
}

DoctorCheck driver_check() {
  DoctorCheck check{"CUDA driver", "", true, ""};
  try {
    const DynamicLibrary driver("the CUDA driver", {"libcuda.so.1"});
    int version = 0;
    driver.function<int (*)(int*)>("cuDriverGetVersion")(&version);
    check.value = fmt::format("for CUDA {}.{}", version / 1000, version / 10 % 100);
  } catch (const Error& error) {
    check.value = missing(error);
  }
  return check;
}

/// Library for `validate --native` on GPUs.
DoctorCheck product_library_check() {
  DoctorCheck check{"GEMM library", "", true, ""};
  try {
    check.value = kernels::found_cublaslt("");
  } catch (const Error& error) {
    check.value = missing(error);
  }
  return check;
}

DoctorCheck engine_check(comm::Engine engine, const std::string& mpi_plugin) {
  DoctorCheck check{fmt::format("engine {}", comm::name_of(engine)), "", true, ""};
  comm::EngineChoice options;
  options.engine = engine;
  options.mpi_plugin = mpi_plugin;
  try {
    check.value = comm::found(options);
  } catch (const Error& error) {
    check.value = missing(error);
    check.advice = fmt::format("{}", fmt::join(error.help_lines(), "; "));
  }
  return check;
}

/// The embedded engine on a GPU.
DoctorCheck gpu_virtual_check() {
  DoctorCheck check{"engine gpu-virtual", "", true, ""};
  try {
    check.value = kernels::open_accelerator(0)->name();
  } catch (const Error& error) {
    check.value = missing(error);
    check.advice = "the embedded engine computes on the CPU";
  }
  return check;
}

DoctorCheck hub_cache_check() {
  const std::string cache = format::hf_cache_folder();
  std::error_code error;
  const fs::file_type type = fs::status(cache, error).type();
  std::string advice;
  if (type == fs::file_type::none) {
    advice = error.message() + ": hf:// names resolve nowhere";
  } else if (type != fs::file_type::directory) {
    advice = "not there: hf:// names resolve nowhere";
  }
  return {"Hugging Face cache", cache, true, advice};
}

}  // namespace

DoctorCheck gpu_check(const kernels::DeviceState& state) {
  DoctorCheck check{"GPU", state.count > 0 ? "" : "none: " + state.reason, true, ""};
  std::string unknown;
  for (size_t i = 0; i < state.capabilities.size(); ++i) {
    const kernels::Capability& capability = state.capabilities[i];
    check.value +=
        fmt::format("{}compute capability {}", i == 0 ? "" : ", ", to_string(capability));
    if (runs_on(state.compiled_for, capability)) continue;
    unknown += fmt::format("{}{}", unknown.empty() ? "" : ", ", i);
  }
  check.advice = state.compiled_for.empty()
                     ? "build it where nvcc is, with -DSHARDTOOL_CUDA=ON; the wheel: pip install . "
                       "-C cmake.define.SHARDTOOL_CUDA=ON"
                     : fmt::format("kernels are built for {}", state.compiled_for);
  if (unknown.empty()) return check;
  check.ok = false;
  check.advice += fmt::format(", not for GPU {}: build with -DSHARDTOOL_CUDA_ARCH for it", unknown);
  return check;
}

std::vector<DoctorCheck> doctor(const std::string& folder, const std::string& mpi_plugin) {
  std::vector<DoctorCheck> checks{system_check(), vector_units_check(), threads_check(),
                                  memory_check(), descriptors_check()};
  const auto add = [&checks](std::vector<DoctorCheck> more) {
    checks.insert(checks.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
  };
  add(store::is_remote(folder) ? store_checks(folder) : folder_checks(folder));
  add({hub_cache_check(), gpu_check(kernels::device_state()), driver_check(),
       product_library_check(), engine_check(comm::Engine::kEmbedded, mpi_plugin),
       engine_check(comm::Engine::kTcp, mpi_plugin), engine_check(comm::Engine::kMpi, mpi_plugin),
       engine_check(comm::Engine::kNccl, mpi_plugin), gpu_virtual_check()});
  return checks;
}

}  // namespace shardtool::api

#pragma once

#include "lib/api/finish.h"
#include "tests/api/disturbed_jobs.h"

/// Shares of runs that tests disturb, and their end.
namespace shardtool::api {

/// Options of a share that writes to `out`.
inline WriteOptions share_options(const Jobs& jobs, Share share) {
  WriteOptions write = jobs.careful(false);
  write.share = share;
  write.resources.threads = 1;
  return write;
}

/// Runs one share in one thread.
inline TransformReport run_one(const Jobs& jobs, Verb verb, Share share) {
  return jobs.run(verb, share_options(jobs, share));
}

inline FinishReport finish_out(const Jobs& jobs, bool verify = false) {
  return finish({jobs.folder / "out", false, verify, {}});
}

}  // namespace shardtool::api

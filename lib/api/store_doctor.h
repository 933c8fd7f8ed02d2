#pragma once

#include <string>
#include <vector>

#include "lib/api/doctor.h"

namespace shardtool::api {

/// Checks a place s3://bucket/prefix: whether the store answers, what is there, uploads that were
/// begun below it and neither finished nor aborted (they cost money, and no listing shows them),
/// and an output that was not finished. An error of the store is a check that is not ok.
std::vector<DoctorCheck> store_checks(const std::string& place);

}  // namespace shardtool::api

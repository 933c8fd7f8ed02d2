#pragma once

/// Declares the reports of all commands, for headers that only name them.
namespace shardtool::api {

struct BenchIoReport;
struct CheckReport;
struct DemoRunReport;
struct DiffReport;
struct DoctorCheck;
struct DrawnRule;
struct AxisReport;
struct ExplainReport;
struct FinishReport;
struct InspectReport;
struct InterruptedRuns;
struct LayoutInfo;
struct PlanChange;
struct PlanDiff;
struct PlanReport;
struct PresetList;
struct TransformReport;
struct ValidateReport;

}  // namespace shardtool::api

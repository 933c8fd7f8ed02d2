#include "lib/base/text.h"
#include "lib/python/bindings.h"
#include "lib/python/convert.h"
#include "lib/python/errors.h"
#include "lib/python/tensor.h"

NB_MODULE(_core, module) {
  // A tensor of torch or NumPy that lives until the interpreter ends keeps its memory, which is no
  // leak of this module.
  nanobind::set_leak_warnings(false);
  module.doc() = "The library of shardtool; use the package `shardtool`.";
  module.attr("__version__") = SHARDTOOL_VERSION;
  module.def("did_you_mean", shardtool::did_you_mean);
  shardtool::python::translate_errors();
  shardtool::python::bind_tensor(module);
  shardtool::python::bind_checkpoint(module);
  shardtool::python::bind_commands(module);
  shardtool::python::bind_plan(module);
}

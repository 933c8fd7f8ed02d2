#include "lib/python/errors.h"

#include <filesystem>

#include "cli/print/error.h"
#include "lib/base/error.h"
#include "lib/python/convert.h"
#include "lib/store/local/failure.h"

namespace nb = nanobind;

namespace shardtool::python {
namespace {

nb::object to_python(const Error& error) {
  std::string message = cli::error_text(error, cli::Style(false), false);
  while (message.ends_with('\n')) message.pop_back();
  nb::dict fields;
  fields["text"] = message;
  fields["id"] = text(error.id());
  fields["code"] = error.exit_status();
  fields["message"] = error.message();
  fields["tensor"] = error.tensor_name();
  fields["help"] = nb::cast(error.help_lines());
  nb::list notes;
  for (const auto& [label, note] : error.notes()) notes.append(nb::make_tuple(label, note));
  fields["notes"] = notes;
  fields["file"] = nb::cast(Path{error.place() ? error.place()->file : std::string()});
  return nb::module_::import_("shardtool._errors").attr("of_fields")(**fields);
}

void raise(const Error& error) {
  const nb::object raised = to_python(error);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
}

void translate(const std::exception_ptr& exception, void* /*payload*/) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    raise(error);
  } catch (const std::filesystem::filesystem_error& error) {
    raise(store::read_failure("use the path", error.path1().string(), error.code().value()));
  }
}

}  // namespace

void translate_errors() {
  nb::register_exception_translator(translate);
}

}  // namespace shardtool::python

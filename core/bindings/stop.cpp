#include "stop.hpp"

#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina {

void bind_stop(nb::module_& m) {
  nb::class_<Stop>(m, "Stop", "A request to end the long calls of those threads that obey it.")
      .def(nb::init<>())
      .def("request", &Stop::request, "End the calls.")
      .def_prop_ro("requested", &Stop::requested, "True if the calls have to end.");
  m.def(
      "obey", [](const Stop* stop) { patience.stop = stop; }, "stop"_a.none(),
      "Let long calls from this thread end once `stop`, which the caller keeps alive, is requested; None: nothing ends "
      "them.");
  m.def("stopped", &stopped, "Return whether long calls from this thread have to end.");
  nb::exception<Stopped>(m, "Stopped", PyExc_BaseException);
}

}  // namespace elimina

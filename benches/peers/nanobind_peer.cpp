// What a function written with nanobind takes to accept an array: the least that a binding library
// does for one argument. The array is released when the function returns.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

NB_MODULE(nanobind_peer, module) {
    module.def("take", [](nb::ndarray<>) {});
}

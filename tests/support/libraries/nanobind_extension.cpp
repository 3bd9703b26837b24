// An extension as users write them with nanobind: it makes arrays, takes arrays, and keeps them.
// It knows nothing of dlfield. extension.py compiles it.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>

namespace nb = nanobind;
using namespace nb::literals;

// nanobind refuses constant memory where Scalar is `double`, and takes it as `const double`.
template <typename Scalar>
using Array = nb::ndarray<nb::array_api, Scalar, nb::c_contig, nb::device::cpu>;

// Has an array as a member, which is what keeps the memory alive.
template <typename Scalar>
class Keeper {
public:
    explicit Keeper(Array<Scalar> array) : array_(std::move(array)) {}

    std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(array_.data()); }
    double read(std::size_t at) const { return array_.data()[at]; }
    void write(std::size_t at, double value) {
        // No code that writes a constant element compiles. Asked first, so that a test can see it.
        if constexpr (std::is_assignable_v<decltype(array_.data()[at]), double>)
            array_.data()[at] = value;
        else
            throw nb::type_error("the elements are read-only: their type is const");
    }

private:
    Array<Scalar> array_;
};

template <typename Scalar>
void bind_keeper(nb::module_ &module, const char *name) {
    using Self = Keeper<Scalar>;
    nb::class_<Self>(module, name)
        .def(nb::init<Array<Scalar>>(), nb::arg("array").noconvert())
        .def("address", &Self::address)
        .def("read", &Self::read, "at"_a)
        .def("write", &Self::write, "at"_a, "value"_a);
}

struct Deletions {
    int count = 0;
};

// What an array that is made here owns.
struct Memory {
    Memory(std::size_t bytes, std::shared_ptr<Deletions> told)
        : values(static_cast<double *>(std::aligned_alloc(64, bytes))), deletions(std::move(told)) {
        if (!values) throw std::bad_alloc();
    }
    ~Memory() {
        std::free(values);
        ++deletions->count;
    }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;

    double *values;
    std::shared_ptr<Deletions> deletions;
};

// JAX shares memory from a boundary of 64 bytes only, so this memory begins at one.
Array<double> zeros(std::size_t size, std::shared_ptr<Deletions> deletions) {
    const std::size_t bytes = (size * sizeof(double) + 63) / 64 * 64;
    auto memory = std::make_unique<Memory>(bytes, std::move(deletions));
    std::fill_n(memory->values, size, 0.0);
    double *const values = memory->values;
    nb::capsule owner(
        memory.release(), [](void *held) noexcept { delete static_cast<Memory *>(held); });
    return Array<double>(values, {size}, owner);
}

NB_MODULE(nanobind_extension, module) {
    bind_keeper<double>(module, "Keeper");
    bind_keeper<const double>(module, "ConstKeeper");
    nb::class_<Deletions>(module, "Deletions")
        .def(nb::init<>())
        .def_ro("count", &Deletions::count);
    module.def("zeros", &zeros, "size"_a, "deletions"_a);
}

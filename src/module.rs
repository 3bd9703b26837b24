//! The module `dlfield._core`: the list of the classes and functions that Python sees, and what is set
//! up when it is imported.

use std::sync::OnceLock;

use pyo3::exceptions::PyImportError;
use pyo3::{PyResult, ffi};

/// Refuses a second interpreter of the process: classes and remembered objects belong to the first
/// one that imports the module.
///
/// # Errors
/// `ImportError`.
fn refuse_second_interpreter() -> PyResult<()> {
    static FIRST: OnceLock<i64> = OnceLock::new();
    // SAFETY: a module is initialised with the interpreter attached.
    let current = unsafe { ffi::PyInterpreterState_Get() };
    // SAFETY: the current interpreter, which is alive.
    let number = unsafe { ffi::PyInterpreterState_GetID(current) };
    let first = *FIRST.get_or_init(|| number);
    if number == first {
        return Ok(());
    }
    Err(PyImportError::new_err(format!(
        "dlfield: expected the interpreter that imported it first (number {first}), got \
         sub-interpreter {number}; import it in one interpreter of a process, or start a process"
    )))
}

// The module does not need the GIL. A static is set once, is an atomic number, or is behind a lock under
// which no Python code runs and no thread waits for the interpreter; a `Cell` belongs to one thread. All
// classes are frozen, and a storage replaces its field as a whole. A capsule is read, and renamed or
// emptied, in a critical section of that capsule.
/// The compiled part of dlfield. Import from `dlfield` instead.
#[pyo3::pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;

    use super::refuse_second_interpreter;
    use crate::alloc::HOST_ALIGNMENT;
    use crate::call;
    #[pymodule_export]
    use crate::compute::{elementwise, reduced, reducing_functions};
    use crate::device::Device;
    use crate::error::{DeviceUnavailable, no_such_buffer};
    #[pymodule_export]
    use crate::interpreter::has_matched_dims;
    use crate::interpreter::prepare_for_the_end;
    #[pymodule_export]
    use crate::python::ask::{
        as_cupy, as_numpy, class_options, device_of, doors, first_held, live_allocations, look_at,
    };
    #[pymodule_export]
    use crate::python::batch::{PyCopyBatch, first_sharing};
    #[pymodule_export]
    use crate::python::create::{
        Allocation, as_storage, empty, empty_like, full, full_like, ones, ones_like, storage,
        zeros, zeros_like,
    };
    #[pymodule_export]
    use crate::python::halo::{PyHaloBoxes, message_part};
    #[pymodule_export]
    use crate::python::machine::{build_features, copy_registers, cuda_driver};
    #[pymodule_export]
    use crate::python::names::{
        check_among, check_names, dim_names, get_dims, gt4py_names, names_are_unrelated,
    };
    #[pymodule_export]
    use crate::python::options::Unset;
    #[pymodule_export]
    use crate::python::presets::register_preset;
    #[pymodule_export]
    use crate::python::settings::{
        copy_settings, free_pool, get_huge_pages, get_num_threads, get_pool_limit, pool_bytes,
        set_huge_pages, set_num_threads, set_pool_limit,
    };
    use crate::python::storage::introduce;
    #[pymodule_export]
    use crate::python::storage::{
        CpuStorage, CudaManagedGpuStorage, GpuStorage, HostBacked, PyStorage,
        SoftwareManagedGpuStorage, rebuild_storage,
    };
    #[pymodule_export]
    use crate::python::stream::{UsedStream, use_stream};
    #[pymodule_export]
    use crate::python::sync_state::PySyncState;
    use crate::python::{entries, options, settings, share_borrows, stream};
    use crate::xla;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        refuse_second_interpreter()?;
        share_borrows(py)?;
        prepare_for_the_end(py)?;
        stream::let_go_while_freeing();
        settings::settle(py)?;
        introduce();
        entries::install(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("UNSET", options::unset(py)?)?;
        module.add("DeviceUnavailable", py.get_type::<DeviceUnavailable>())?;
        module.add("GTNoSuchBufferError", no_such_buffer(py)?)?;
        module.add("HOST_ALIGNMENT", HOST_ALIGNMENT)?;
        module.add("HOST_DEVICE_TYPE", Device::CPU.code())?;
        call::register(module)?;
        xla::register(module)
    }
}

/// Makes the module known, as `_core`, to an interpreter that has not started.
#[cfg(fuzzing)]
pub fn make_known() {
    pyo3::append_to_inittab!(_core);
}

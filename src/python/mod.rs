//! The Python skin: every class and function of `dlfield._core`. It converts values, releases the
//! GIL and calls one function. Assignment from foreign objects is here too, since it needs the
//! doors.

mod borrows;
mod library;
mod numpy;
mod device_array;
mod presets;
mod options;
mod sync_state;
mod stream;
mod settings;
mod machine;
mod jax;
mod storage;
mod elementwise;
mod batch;
mod halo;
mod names;
mod create;
mod entries;
mod ask;
mod bind;
#[cfg(feature = "ndarray")]
mod argument;

use std::sync::OnceLock;

use pyo3::exceptions::PyImportError;
use pyo3::{PyResult, ffi};

pub use borrows::share_borrows;

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

    #[pymodule_export]
    use super::ask::{
        as_cupy, as_numpy, class_options, device_of, doors, live_allocations, look_at,
    };
    #[pymodule_export]
    use super::batch::PyCopyBatch;
    #[pymodule_export]
    use super::create::{
        as_storage, empty, empty_like, full, full_like, ones, ones_like, storage, zeros, zeros_like,
    };
    #[pymodule_export]
    use super::elementwise::{elementwise, reduced, reducing_functions};
    #[pymodule_export]
    use super::halo::{PyHaloBoxes, message_part};
    #[pymodule_export]
    use super::machine::{build_features, copy_registers, cuda_driver};
    #[pymodule_export]
    use super::names::{check_among, check_names, get_dims, gt4py_names, names_are_unrelated};
    #[pymodule_export]
    use super::options::Unset;
    #[pymodule_export]
    use super::presets::register_preset;
    #[pymodule_export]
    use super::settings::{
        free_pool, get_huge_pages, get_num_threads, get_pool_limit, pool_bytes, set_huge_pages,
        set_num_threads, set_pool_limit,
    };
    use super::storage::introduce;
    #[pymodule_export]
    use super::storage::{
        CpuStorage, CudaManagedGpuStorage, GpuStorage, HostBacked, PyStorage,
        SoftwareManagedGpuStorage, rebuild_storage,
    };
    #[pymodule_export]
    use super::stream::{UsedStream, use_stream};
    #[pymodule_export]
    use super::sync_state::PySyncState;
    use super::{
        bind, entries, options, refuse_second_interpreter, settings, share_borrows, stream,
    };
    use crate::alloc::HOST_ALIGNMENT;
    use crate::device::Device;
    use crate::error::{DeviceUnavailable, no_such_buffer};
    use crate::interpreter::prepare_for_the_end;

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
        bind::register(module)
    }
}

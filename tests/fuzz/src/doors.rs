//! Objects of Python at the doors: what claims to be an array is refused, or becomes a storage with what
//! was claimed, and values that are there are read; pickles are refused, or make the storage that makes
//! the same pickle. Nothing stays of either.
#![no_main]

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use arbitrary::Arbitrary;
use dlfield::live_allocations;
use fuzz::python::{Door, Pickle, View};
use libfuzzer_sys::fuzz_target;
use pyo3::exceptions::{PyException, PySystemError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

#[derive(Debug, Arbitrary)]
enum Input {
    Door(Door),
    Pickle(Pickle),
}

/// Functions of the module, in an interpreter that is started once.
struct Module {
    as_storage: Py<PyAny>,
    rebuild_storage: Py<PyAny>,
}

fn module() -> &'static Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE.get_or_init(|| {
        dlfield::fuzzed::make_known();
        Python::initialize();
        Python::attach(|py| imported(py).expect("dlfield beside NumPy"))
    })
}

/// The package with this build's extension, which is there before anything imports another.
fn imported(py: Python<'_>) -> PyResult<Module> {
    let core = py.import("_core")?;
    py.import("sys")?.getattr("modules")?.set_item("dlfield._core", &core)?;
    py.import("dlfield")?;
    let function = |name: &str| core.getattr(name).map(Bound::unbind);
    Ok(Module {
        as_storage: function("as_storage")?,
        rebuild_storage: function("rebuild_storage")?,
    })
}

/// A refusal is an error for users: no panic, and none by which Python says that a function misbehaves.
fn check_refusal(py: Python<'_>, error: &PyErr) {
    let proper = error.is_instance_of::<PyException>(py);
    assert!(proper && !error.is_instance_of::<PySystemError>(py), "{error}");
}

fn check_door(py: Python<'_>, door: &Door) -> PyResult<()> {
    let Some(array) = door.object(py)? else { return Ok(()) };
    match module().as_storage.bind(py).call1((&array,)) {
        Ok(storage) => check_accepted(door, &storage)?,
        Err(error) => {
            check_refusal(py, &error);
            assert!(!(door.is_honest() && door.claims.are_aligned()), "{door:?}\n{error}");
        }
    }
    if let Ok(view) = array.cast::<View>() {
        let [taken, released] = [&view.get().taken, &view.get().released];
        assert_eq!(taken.load(Ordering::Relaxed), released.load(Ordering::Relaxed), "{door:?}");
    }
    // SAFETY: an object that is alive.
    let holders = unsafe { pyo3::ffi::Py_REFCNT(array.as_ptr()) };
    assert_eq!(holders, 1, "{door:?}");
    Ok(())
}

fn check_accepted(door: &Door, storage: &Bound<'_, PyAny>) -> PyResult<()> {
    assert!(!door.is_impossible(), "{door:?}");
    if !door.is_told_as_claimed() {
        return Ok(());
    }
    let claims = &door.claims;
    let shape: Vec<i64> = storage.getattr("shape")?.extract()?;
    assert_eq!(shape, claims.shape, "{door:?}");
    if shape.contains(&0) {
        return Ok(());
    }
    let itemsize: i64 = storage.getattr("itemsize")?.extract()?;
    let address: i64 = storage.getattr("ptr")?.extract()?;
    assert_eq!((itemsize, address), (claims.itemsize, claims.address), "{door:?}");
    let strides: Vec<i128> = storage.getattr("strides")?.extract()?;
    let expected = claims.byte_strides().expect("an array");
    let differ = |axis: &usize| shape[*axis] > 1 && strides[*axis] != expected[*axis];
    assert!(!(0..shape.len()).any(|axis| differ(&axis)), "{strides:?} {door:?}");
    assert!(storage.getattr("readonly")?.is_truthy()? || !claims.readonly, "{door:?}");
    if claims.are_true() {
        let bytes: Vec<u8> = storage.call_method0("tobytes")?.extract()?;
        assert_eq!(bytes, claims.values(), "{door:?}");
    }
    Ok(())
}

fn check_pickle(py: Python<'_>, pickle: &Pickle) -> PyResult<()> {
    let arguments = pickle.arguments(py)?;
    match module().rebuild_storage.bind(py).call1(&arguments) {
        Err(error) => check_refusal(py, &error),
        Ok(storage) => {
            let (function, again): (Bound<'_, PyAny>, Bound<'_, PyTuple>) =
                storage.call_method0("__reduce__")?.extract()?;
            assert!(again.get_item(0)?.eq(arguments.get_item(0)?)?, "{pickle:?}");
            let same = function.call1(&again)?.call_method0("__reduce__")?;
            assert!(same.eq((function, again))?, "{pickle:?}");
        }
    }
    Ok(())
}

fuzz_target!(|input: Input| {
    let _ = module();
    Python::attach(|py| {
        let before = live_allocations();
        let done = match &input {
            Input::Door(door) => check_door(py, door),
            Input::Pickle(pickle) => check_pickle(py, pickle),
        };
        done.unwrap_or_else(|error| panic!("{input:?}\n{error}"));
        assert_eq!(live_allocations(), before, "{input:?}");
    });
});

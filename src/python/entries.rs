//! Entries: each stands in front of a function, and passes the arguments of its usual call on by
//! position.
//!
//! PyO3 takes the arguments of a function with `**options` as a tuple, and reads each keyword as
//! text. An entry has Python's fast calling convention instead, and compares keywords as objects:
//! those in source code, and those of NumPy, are interned. A call that it does not recognise goes to
//! the function that PyO3 made, with all its arguments.
//!
//! docs/design.md says what this saves. Entries would not be needed if PyO3 used the fast calling
//! convention for a function with `**options` too, and made the dict only for keywords left over.

use std::ffi::{CString, c_int};
use std::mem::transmute;
use std::ptr;
use std::sync::OnceLock;

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyCapsule, PyDict, PyString, PyTuple};

use super::create::{as_storage, empty, zeros};
use super::storage::PyStorage;
use crate::interpreter::attached;
use crate::protocol::dlpack::ExportRequest;
use crate::short_ways::short_ways;

/// A function with the fast calling convention.
type Fast = ffi::PyCFunctionFastWithKeywords;

const CONVENTION: c_int = ffi::METH_FASTCALL | ffi::METH_KEYWORDS;

/// The two functions behind an entry.
struct Ways {
    /// Takes the arguments of the usual call, by position.
    usual: Fast,
    /// Takes any arguments.
    any: Py<PyAny>,
}

/// The arguments of a call, as Python's fast calling convention has them.
#[derive(Clone, Copy)]
struct Arguments {
    args: *const *mut ffi::PyObject,
    count: isize,
    names: *mut ffi::PyObject,
}

#[pyfunction]
#[pyo3(signature = (data, /))]
fn as_storage_of(data: &Bound<'_, PyAny>) -> PyResult<Py<PyStorage>> {
    as_storage(data.py(), Some(data).filter(|data| !data.is_none()), None, None, None, None)
}

#[pyfunction]
#[pyo3(signature = (shape, /))]
fn empty_of(shape: &Bound<'_, PyAny>) -> PyResult<Py<PyStorage>> {
    empty(shape, None, None)
}

#[pyfunction]
#[pyo3(signature = (shape, /))]
fn zeros_of(shape: &Bound<'_, PyAny>) -> PyResult<Py<PyStorage>> {
    zeros(shape, None, None)
}

#[pyfunction]
#[pyo3(signature = (storage, stream, max_version, dl_device, copy, /))]
fn capsule_of<'py>(
    storage: &Bound<'py, PyStorage>,
    stream: Option<&Bound<'py, PyAny>>,
    max_version: Option<&Bound<'py, PyAny>>,
    dl_device: Option<&Bound<'py, PyAny>>,
    copy: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyStorage::capsule(storage, &ExportRequest { stream, max_version, dl_device, copy })
}

/// The keywords of `__dlpack__`, in the order of `capsule_of`.
const KEYWORDS: [&str; 4] = ["stream", "max_version", "dl_device", "copy"];

/// Defines the entry of a function whose usual call has one argument.
macro_rules! entry_of_one {
    ($entry:ident, $ways:ident) => {
        static $ways: OnceLock<Ways> = OnceLock::new();

        /// # Safety
        /// To be called as Python calls a function with the fast calling convention.
        unsafe extern "C" fn $entry(
            module: *mut ffi::PyObject,
            args: *const *mut ffi::PyObject,
            count: isize,
            names: *mut ffi::PyObject,
        ) -> *mut ffi::PyObject {
            match $ways.get() {
                // SAFETY: the arguments of this call.
                Some(ways) if count == 1 && names.is_null() => unsafe {
                    (ways.usual)(module, args, 1, ptr::null_mut())
                },
                // SAFETY: as above.
                ways => unsafe { call(ways, None, Arguments { args, count, names }) },
            }
        }
    };
}

entry_of_one!(enter_as_storage, AS_STORAGE);
entry_of_one!(enter_empty, EMPTY);
entry_of_one!(enter_zeros, ZEROS);

static DLPACK: OnceLock<Ways> = OnceLock::new();
static NAMES: OnceLock<[Py<PyString>; 4]> = OnceLock::new();

/// The entry of `__dlpack__`.
///
/// # Safety
/// To be called as Python calls a method with the fast calling convention.
unsafe extern "C" fn enter_dlpack(
    storage: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: isize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let (ways, arguments) = (DLPACK.get(), Arguments { args, count, names });
    // SAFETY: the arguments of this call.
    let values = unsafe { by_position(arguments) };
    let Some((ways, [stream, max_version, dl_device, copy])) = ways.zip(values) else {
        // SAFETY: as above.
        return unsafe { call(ways, Some(storage), arguments) };
    };
    let values = [storage, stream, max_version, dl_device, copy];
    // SAFETY: five objects that the caller holds meanwhile.
    unsafe { (ways.usual)(ptr::null_mut(), values.as_ptr(), 5, ptr::null_mut()) }
}

/// Returns the values of the keywords in the order of `KEYWORDS`, with Python's None for a missing
/// one. `None` if the call has any other argument.
///
/// # Safety
/// `arguments` are those of a call.
unsafe fn by_position(arguments: Arguments) -> Option<[*mut ffi::PyObject; 4]> {
    let Arguments { args, count, names } = arguments;
    // SAFETY: a static object.
    let mut values = [unsafe { ffi::Py_None() }; 4];
    if count != 0 {
        return None;
    }
    if names.is_null() {
        return Some(values);
    }
    let known = NAMES.get()?;
    // SAFETY: the names of keywords are a tuple.
    let number = unsafe { ffi::PyTuple_Size(names) };
    for index in 0..number {
        // SAFETY: within the tuple.
        let name = unsafe { ffi::PyTuple_GetItem(names, index) };
        let place = known.iter().position(|known| known.as_ptr() == name)?;
        // SAFETY: without other arguments there is a value at the index of each name.
        let value = unsafe { args.offset(index) };
        // SAFETY: as above.
        *values.get_mut(place)? = unsafe { value.read() };
    }
    Some(values)
}

/// Calls the function that takes any arguments.
///
/// # Safety
/// `first` and `arguments` are those of a call.
unsafe fn call(
    ways: Option<&Ways>,
    first: Option<*mut ffi::PyObject>,
    arguments: Arguments,
) -> *mut ffi::PyObject {
    let answer = attached(|py| {
        // SAFETY: the caller's arguments.
        let collected = unsafe { collect(py, first, arguments) };
        let answer = collected.and_then(|(positional, keywords)| match ways {
            Some(ways) => ways.any.bind(py).call(positional, keywords.as_ref()),
            None => Err(PyImportError::new_err("dlfield: expected a module that is set up")),
        });
        answer.map(Bound::into_ptr).map_err(|error| error.restore(py))
    });
    answer.unwrap_or(Err(())).unwrap_or(ptr::null_mut())
}

/// Collects the arguments in a tuple, and the keywords in a dict if there are any.
///
/// # Safety
/// As [`call`].
unsafe fn collect<'py>(
    py: Python<'py>,
    first: Option<*mut ffi::PyObject>,
    Arguments { args, count, names }: Arguments,
) -> PyResult<(Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>)> {
    let value = |index| {
        // SAFETY: an index of the call's arguments, and of the values of keywords behind them.
        let place = unsafe { args.offset(index) };
        // SAFETY: as above.
        let value = unsafe { place.read() };
        // SAFETY: an object that the caller holds meanwhile.
        unsafe { Bound::from_borrowed_ptr(py, value) }
    };
    // SAFETY: an object that the caller holds meanwhile.
    let first = first.map(|first| unsafe { Bound::from_borrowed_ptr(py, first) });
    let positional: Vec<_> = first.into_iter().chain((0..count).map(value)).collect();
    let positional = PyTuple::new(py, positional)?;
    // SAFETY: NULL, or the names of keywords.
    let Some(names) = (unsafe { Bound::from_borrowed_ptr_or_opt(py, names) }) else {
        return Ok((positional, None));
    };
    let keywords = PyDict::new(py);
    for (index, name) in (count..).zip(names.cast_into::<PyTuple>()?.iter()) {
        keywords.set_item(name, value(index))?;
    }
    Ok((positional, Some(keywords)))
}

/// Puts the entries in front of the functions of the module, and of the method of the class.
///
/// # Errors
/// The exception that Python raises if a function cannot be made.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    if !short_ways() {
        return Ok(());
    }
    let py = module.py();
    let functions: [(_, Fast, _, _); 3] = [
        ("as_storage", enter_as_storage, &AS_STORAGE, wrap_pyfunction!(as_storage_of, py)?),
        ("empty", enter_empty, &EMPTY, wrap_pyfunction!(empty_of, py)?),
        ("zeros", enter_zeros, &ZEROS, wrap_pyfunction!(zeros_of, py)?),
    ];
    for (name, entry, ways, usual) in functions {
        let any = module.getattr(name)?;
        let Some(definition) = definition(name, entry, ways, &usual, &any)? else { continue };
        let of = module.name()?;
        // SAFETY: a definition that lives forever, and objects that the function keeps.
        let made = unsafe { ffi::PyCFunction_NewEx(definition, module.as_ptr(), of.as_ptr()) };
        // SAFETY: a new reference, or NULL with an exception set.
        module.setattr(name, unsafe { Bound::from_owned_ptr_or_err(py, made) }?)?;
    }
    let _first = NAMES.set(KEYWORDS.map(|keyword| PyString::intern(py, keyword).unbind()));
    let (class, name) = (py.get_type::<PyStorage>(), "__dlpack__");
    let (usual, any) = (wrap_pyfunction!(capsule_of, py)?, class.getattr(name)?);
    if let Some(definition) = definition(name, enter_dlpack, &DLPACK, &usual, &any)? {
        // SAFETY: a definition that lives forever; the first argument of the entry is a storage.
        let made = unsafe { ffi::PyDescr_NewMethod(class.as_type_ptr(), definition) };
        // SAFETY: a new reference, or NULL with an exception set.
        class.setattr(name, unsafe { Bound::from_owned_ptr_or_err(py, made) }?)?;
    }
    Ok(())
}

/// Makes the definition of an entry with the signature and docstring of `any`, and sets its `ways`.
/// `None` if PyO3 gives the function for the usual call another calling convention.
fn definition(
    name: &str,
    entry: Fast,
    ways: &OnceLock<Ways>,
    usual: &Bound<'_, PyCFunction>,
    any: &Bound<'_, PyAny>,
) -> PyResult<Option<*mut ffi::PyMethodDef>> {
    // SAFETY: a function in C.
    if unsafe { ffi::PyCFunction_GetFlags(usual.as_ptr()) } != CONVENTION {
        return Ok(None);
    }
    // SAFETY: as above.
    let Some(found) = (unsafe { ffi::PyCFunction_GetFunction(usual.as_ptr()) }) else {
        return Ok(None);
    };
    // SAFETY: a function with these flags has this signature; it is one of this library.
    let usual = unsafe { transmute::<ffi::PyCFunction, Fast>(found) };
    let (signature, text) = (any.getattr("__text_signature__")?, any.getattr("__doc__")?);
    let doc = CString::new(format!("{name}{signature}\n--\n\n{text}"))?;
    let _first = ways.set(Ways { usual, any: any.clone().unbind() });
    let definition = ffi::PyMethodDef {
        ml_name: CString::new(name)?.into_raw(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: entry },
        ml_flags: CONVENTION,
        ml_doc: doc.into_raw(),
    };
    Ok(Some(Box::into_raw(Box::new(definition))))
}

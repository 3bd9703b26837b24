//! Signatures of functions, and the types of their results, which NumPy is asked for once.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyFloat, PyInt, PyString};
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::protocol::buffer::shape_and_dtype;
use crate::python::numpy::dtype_from;
use crate::short_ways::short_ways;

/// The dimensions of a result, of those of the operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signature {
    /// `...->...`
    Elementwise,
    /// `k...->...`
    Reduced,
    /// `k...->...`, with truths as result.
    ReducedToTruth,
    /// `k...->...`, with indices along `k` as result.
    ReducedToIndex,
    /// `k...->k...`
    Accumulated,
}

/// A type for each result of a function.
pub(super) type Types = SmallVec<[DType; 2]>;

/// A type of an operand that decides on the type of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Items(DType),
    /// Numbers of Python, whose values do not count (NEP 50).
    Float,
    Int,
}

impl Kind {
    /// The kind of a number, or of an array of NumPy.
    pub(super) fn of(number: &Bound<'_, PyAny>) -> Option<Self> {
        if number.is_exact_instance_of::<PyFloat>() {
            return Some(Self::Float);
        }
        if number.is_exact_instance_of::<PyInt>() {
            return Some(Self::Int);
        }
        let of_array = || shape_and_dtype(number).map(|(_, dtype)| dtype);
        scalar_type(number).or_else(of_array).map(Self::Items)
    }
}

/// The type of a number of NumPy.
fn scalar_type(number: &Bound<'_, PyAny>) -> Option<DType> {
    static CLASSES: PyOnceLock<Vec<(Py<PyAny>, DType)>> = PyOnceLock::new();
    let py = number.py();
    let read = || {
        let numpy = py.import(intern!(py, "numpy"))?;
        let plain = DType::all().filter(|dtype| dtype.format().is_some());
        plain.map(|dtype| Ok((numpy.getattr(dtype.name())?.unbind(), dtype))).collect()
    };
    let classes = CLASSES.get_or_try_init::<_, PyErr>(py, read).ok()?;
    let class = number.get_type();
    classes.iter().find(|(one, _)| class.is(one)).map(|(_, dtype)| *dtype)
}

/// A universal function of NumPy.
pub(super) struct Ufunc {
    /// `numpy.` and its name.
    pub(super) name: String,
    /// How many results it has.
    pub(super) results: usize,
    /// True for functions of matrices and the like, which do not work element by element.
    pub(super) has_core_dims: bool,
}

impl Ufunc {
    pub(super) fn of(function: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        let py = function.py();
        if let Some(ufunc) = cache().get(&address(function)).and_then(|one| one.ufunc.clone()) {
            return Ok(ufunc);
        }
        let name = function.getattr(intern!(py, "__name__"))?.cast_into::<PyString>()?;
        let ufunc = Arc::new(Self {
            name: format!("numpy.{}", name.to_cow()?),
            results: function.getattr(intern!(py, "nout"))?.extract()?,
            has_core_dims: !function.getattr(intern!(py, "signature"))?.is_none(),
        });
        change(function, |entry| entry.ufunc = Some(Arc::clone(&ufunc)));
        Ok(ufunc)
    }
}

/// NumPy's answers about one function.
struct Entry {
    /// Keeps the function, whose address is the key.
    _function: Py<PyAny>,
    ufunc: Option<Arc<Ufunc>>,
    types: Vec<(Signature, SmallVec<[Kind; 2]>, Types)>,
}

type Cache = HashMap<usize, Entry>;

/// More functions than NumPy has; programs that make functions without end begin anew.
const MOST: usize = 4096;

fn cache() -> MutexGuard<'static, Cache> {
    static CACHE: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn address(function: &Bound<'_, PyAny>) -> usize {
    function.as_ptr().addr()
}

fn change(function: &Bound<'_, PyAny>, change: impl FnOnce(&mut Entry)) {
    let mut cache = cache();
    let full = cache.len() >= MOST;
    let before = if full { std::mem::take(&mut *cache) } else { Cache::new() };
    let new = || Entry { _function: function.clone().unbind(), ufunc: None, types: Vec::new() };
    change(cache.entry(address(function)).or_insert_with(new));
    drop(cache); // first: what is let go may be anything
    drop(before);
}

/// The types of the results of a function for operands of these kinds, or as NumPy answers if the
/// kinds do not decide.
pub(super) fn result_types(
    function: &Bound<'_, PyAny>,
    signature: Signature,
    kinds: Option<SmallVec<[Kind; 2]>>,
    ask: impl FnOnce() -> PyResult<Types>,
) -> PyResult<Types> {
    let Some(kinds) = kinds else { return ask() };
    if short_ways()
        && let Some(entry) = cache().get(&address(function))
        && let Some((.., types)) =
            entry.types.iter().find(|(own, known, _)| *own == signature && *known == kinds)
    {
        return Ok(types.clone());
    }
    let types = ask()?;
    change(function, |entry| entry.types.push((signature, kinds, types.clone())));
    Ok(types)
}

/// The type of an array, or a number of NumPy, that `what` has made.
///
/// # Errors
/// `TypeError` for one that no storage holds.
pub(super) fn result_type(made: &Bound<'_, PyAny>, what: &str) -> PyResult<DType> {
    let dtype = made.getattr_opt(intern!(made.py(), "dtype"))?;
    if let Some(dtype) = dtype.as_ref().and_then(|dtype| dtype_from(dtype).ok()) {
        return Ok(dtype);
    }
    let name = dtype.map(|dtype| dtype.to_string()).filter(|name| name != "object");
    let got = name.unwrap_or_else(|| "objects of Python".to_owned());
    Err(PyTypeError::new_err(format!(
        "{what}: expected a result of numbers, got {got}; use to_numpy() of the storages"
    )))
}

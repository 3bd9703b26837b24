//! What NumPy has told of its functions before.

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

/// A type for each result of a function.
pub(super) type Types = SmallVec<[DType; 2]>;

/// A type of an operand that decides on the type of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Items(DType),
    /// Numbers of Python's, whose values do not count (NEP 50).
    Float,
    Int,
}

impl Kind {
    /// The kind of a number, or of an array of NumPy's.
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

/// The type of a number of NumPy's.
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
    classes.iter().find(|(known, _)| class.is(known)).map(|(_, dtype)| *dtype)
}

/// How a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Call,
    /// Its method of this name.
    Reduce,
    Accumulate,
}

/// A call whose results have the same types whatever the values are.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// The address of the function.
    function: usize,
    way: Way,
    inputs: SmallVec<[Kind; 2]>,
}

impl Key {
    pub(super) fn new(function: &Bound<'_, PyAny>, way: Way, inputs: SmallVec<[Kind; 2]>) -> Self {
        Self { function: function.as_ptr().addr(), way, inputs }
    }
}

/// What a universal function says of itself.
pub(super) struct About {
    /// `numpy.` and its name.
    pub(super) name: String,
    /// How many results it has.
    pub(super) results: usize,
    /// True for functions of matrices and the like, which do not work element by element.
    pub(super) has_core_dims: bool,
}

impl About {
    fn read(function: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = function.py();
        let name = function.getattr(intern!(py, "__name__"))?.cast_into::<PyString>()?;
        Ok(Self {
            name: format!("numpy.{}", name.to_cow()?),
            results: function.getattr(intern!(py, "nout"))?.extract()?,
            has_core_dims: !function.getattr(intern!(py, "signature"))?.is_none(),
        })
    }
}

/// A function of which something is known.
struct Function {
    /// Keeps the function, whose address is the key.
    _kept: Py<PyAny>,
    about: Option<Arc<About>>,
    types: Vec<(Key, Types)>,
}

/// By the addresses of the functions.
#[derive(Default)]
pub(super) struct Known(HashMap<usize, Function>);

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

impl Known {
    /// More than NumPy has; programs that make functions without end begin anew.
    const MOST: usize = 4096;

    fn lock() -> MutexGuard<'static, Self> {
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(key: &Key) -> Option<Types> {
        let known = Self::lock();
        let mut types = known.0.get(&key.function)?.types.iter();
        types.find(|(one, _)| one == key).map(|(_, types)| types.clone())
    }

    pub(super) fn put(key: Key, dtypes: Types, function: &Bound<'_, PyAny>) {
        Self::change(function, |known| known.types.push((key, dtypes)));
    }

    pub(super) fn about(function: &Bound<'_, PyAny>) -> PyResult<Arc<About>> {
        let address = function.as_ptr().addr();
        if let Some(about) = Self::lock().0.get(&address).and_then(|known| known.about.clone()) {
            return Ok(about);
        }
        let about = Arc::new(About::read(function)?);
        Self::change(function, |known| known.about = Some(Arc::clone(&about)));
        Ok(about)
    }

    fn change(function: &Bound<'_, PyAny>, change: impl FnOnce(&mut Function)) {
        let mut known = Self::lock();
        let full = known.0.len() >= Self::MOST;
        let before = if full { std::mem::take(&mut *known) } else { Self::default() };
        let new = || Function { _kept: function.clone().unbind(), about: None, types: Vec::new() };
        change(known.0.entry(function.as_ptr().addr()).or_insert_with(new));
        drop(known); // first: what is let go may be anything
        drop(before);
    }
}

/// The type of an array, or a number of NumPy's, that `what` has made.
///
/// # Errors
/// `TypeError` for one that no storage holds.
pub(super) fn result_type(made: &Bound<'_, PyAny>, what: &str) -> PyResult<DType> {
    let found = made.getattr_opt(intern!(made.py(), "dtype"))?;
    if let Some(dtype) = found.as_ref().and_then(|found| dtype_from(found).ok()) {
        return Ok(dtype);
    }
    let found = found.map_or_else(|| "objects of Python".to_owned(), |found| found.to_string());
    Err(PyTypeError::new_err(format!(
        "{what}: expected a result of numbers, got {found}; use to_numpy() of the storages"
    )))
}

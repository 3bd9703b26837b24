//! What NumPy has told of its functions before.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use smallvec::SmallVec;

use super::given::Kind;
use crate::dtype::DType;
use crate::python::numpy::dtype_from;

/// A type for each result of a function.
pub(super) type Types = SmallVec<[DType; 2]>;

/// How a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Way {
    Call,
    /// Its method of this name.
    Reduce,
    Accumulate,
}

/// A call whose results have the same types whatever the values are.
#[derive(Debug, PartialEq, Eq, Hash)]
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

#[derive(Default)]
pub(super) struct Known {
    dtypes: HashMap<Key, Types>,
    /// By the address of the function.
    about: HashMap<usize, Arc<About>>,
    /// Keeps the functions, whose addresses are in the keys.
    functions: Vec<Py<PyAny>>,
}

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

impl Known {
    /// More than NumPy has; programs that make functions without end begin anew.
    const MOST: usize = 4096;

    fn lock() -> MutexGuard<'static, Self> {
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(key: &Key) -> Option<Types> {
        Self::lock().dtypes.get(key).cloned()
    }

    pub(super) fn put(key: Key, dtypes: Types, function: &Bound<'_, PyAny>) {
        Self::keep(function, |known| drop(known.dtypes.insert(key, dtypes)));
    }

    pub(super) fn about(function: &Bound<'_, PyAny>) -> PyResult<Arc<About>> {
        let address = function.as_ptr().addr();
        if let Some(about) = Self::lock().about.get(&address) {
            return Ok(Arc::clone(about));
        }
        let about = Arc::new(About::read(function)?);
        let kept = Arc::clone(&about);
        Self::keep(function, |known| drop(known.about.insert(address, kept)));
        Ok(about)
    }

    fn keep(function: &Bound<'_, PyAny>, put: impl FnOnce(&mut Self)) {
        let mut known = Self::lock();
        let full = known.functions.len() >= Self::MOST;
        let before = if full { std::mem::take(&mut *known) } else { Self::default() };
        put(&mut known);
        known.functions.push(function.clone().unbind());
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

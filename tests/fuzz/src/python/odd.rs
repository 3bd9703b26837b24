//! Values that stand where others are expected.

use arbitrary::Arbitrary;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

/// A value of some type.
#[derive(Debug, Clone, Arbitrary)]
pub enum Odd {
    Nothing,
    Truth(bool),
    Number(i128),
    Fraction(f64),
    Text(String),
    Bytes(Vec<u8>),
    Numbers(Vec<i64>),
    List(Vec<i64>),
    Words(Vec<String>),
    Pairs(Vec<(i64, i64)>),
    Object,
}

impl Odd {
    /// # Errors
    /// Those of Python's memory.
    pub fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Nothing => py.None().into_bound_py_any(py),
            Self::Truth(value) => value.into_bound_py_any(py),
            Self::Number(value) => value.into_bound_py_any(py),
            Self::Fraction(value) => value.into_bound_py_any(py),
            Self::Text(value) => value.into_bound_py_any(py),
            Self::Bytes(value) => PyBytes::new(py, value).into_bound_py_any(py),
            Self::Numbers(value) => PyTuple::new(py, value)?.into_bound_py_any(py),
            Self::List(value) => PyList::new(py, value)?.into_bound_py_any(py),
            Self::Words(value) => PyTuple::new(py, value)?.into_bound_py_any(py),
            Self::Pairs(value) => PyList::new(py, value)?.into_bound_py_any(py),
            Self::Object => py.get_type::<PyAny>().call0(),
        }
    }
}

/// The odd value if there is one, else the expected one.
pub(super) fn or_odd<'py>(
    py: Python<'py>,
    odd: Option<&Odd>,
    expected: impl IntoPyObject<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    match odd {
        Some(odd) => odd.object(py),
        None => expected.into_bound_py_any(py),
    }
}

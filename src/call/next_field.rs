//! A field of gt4py.next over the memory of an array, for one call.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis, PySlice, PyTuple};
use smallvec::SmallVec;

use crate::protocol::is_plain_ndarray;

/// Makes the fields for one argument.
pub(super) struct NextField {
    name: Py<PyAny>,
    dims: Py<PyAny>,
    /// For an output that is cut to the domain, the axis there of each of its dimensions.
    cut: Option<Vec<usize>>,
    class: Py<PyAny>,
    as_array: Py<PyAny>,
    domain_of: Py<PyAny>,
    /// The attribute in which a field caches its origin.
    origin_cache: Option<Py<PyAny>>,
    /// The domain that was made last.
    last: Mutex<Option<Arc<LastDomain>>>,
}

struct LastDomain {
    shape: Numbers,
    origin: Numbers,
    domain: Py<PyAny>,
    /// The origin as GT4Py has it.
    at: Py<PyTuple>,
}

type Numbers = SmallVec<[i64; 4]>;

impl NextField {
    /// `declared`: the dimensions, and the axes of an output that is cut, or None. `makers`: the class
    /// of fields, the function that converts an array for it, and the one that makes domains.
    pub(super) fn new(
        name: Bound<'_, PyAny>,
        declared: &Bound<'_, PyAny>,
        makers: [&Bound<'_, PyAny>; 3],
        origin_cache: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let (dims, cut) = declared.extract()?;
        let [class, as_array, domain_of] = makers.map(|maker| maker.clone().unbind());
        let last = Mutex::new(None);
        Ok(Self { name: name.unbind(), dims, cut, class, as_array, domain_of, origin_cache, last })
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.dims)?;
        visit.call(&self.class)?;
        visit.call(&self.as_array)?;
        visit.call(&self.domain_of)
    }

    pub(super) fn name<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.name.bind(py)
    }

    /// The field over the array of a call.
    pub(super) fn of<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyDict>,
        domain: &Bound<'py, PyTuple>,
        origins: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = values.get_item(&self.name)?.filter(|array| !array.is_none());
        let array = array.ok_or_else(|| {
            let name = self.name(py);
            PyTypeError::new_err(format!(
                "{name}: expected an array, got None; unused fields are needed, too"
            ))
        })?;
        let array = match is_plain_ndarray(&array) {
            true => array,
            false => self.as_array.bind(py).call1((array,))?,
        };
        let shape: Numbers = numbers(&array.getattr(intern!(py, "shape"))?)?;
        let origin = origins.get_item(&self.name)?;
        let origin = origin.map(|origin| numbers(&origin)).transpose()?.unwrap_or_default();
        let (array, shape, origin) = match &self.cut {
            Some(axes) => cut(&array, shape, origin, &window(domain, axes)?)?,
            None => (array, shape, origin),
        };
        let last = self.domain(py, shape, origin)?;
        let field = self.class.bind(py).call1((&last.domain, array))?;
        if let Some(cache) = &self.origin_cache {
            let attributes = field.getattr(intern!(py, "__dict__"))?;
            attributes.set_item(cache, &last.at)?;
        }
        Ok(field)
    }

    fn domain(&self, py: Python<'_>, shape: Numbers, origin: Numbers) -> PyResult<Arc<LastDomain>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(last) = last.filter(|last| last.shape == shape && last.origin == origin) {
            return Ok(last);
        }
        let (extents, at) = (PyTuple::new(py, &shape)?, PyTuple::new(py, &origin)?);
        let domain = self.domain_of.bind(py).call1((&self.dims, extents, &at))?;
        let made = LastDomain { shape, origin, domain: domain.unbind(), at: at.unbind() };
        let made = Arc::new(made);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.replace(Arc::clone(&made));
        drop(last);
        drop(before); // not under the lock
        Ok(made)
    }
}

fn numbers(given: &Bound<'_, PyAny>) -> PyResult<Numbers> {
    given.cast::<PyTuple>()?.iter_borrowed().map(|number| number.extract()).collect()
}

/// First point of the domain, and the end behind the last, along each dimension of a field.
fn window(domain: &Bound<'_, PyTuple>, axes: &[usize]) -> PyResult<SmallVec<[(i64, i64); 4]>> {
    axes.iter().map(|&axis| domain.get_borrowed_item(axis)?.extract()).collect()
}

/// The part of an array that an operator computes, which computes wherever its output is.
fn cut<'py>(
    array: &Bound<'py, PyAny>,
    shape: Numbers,
    origin: Numbers,
    window: &[(i64, i64)],
) -> PyResult<(Bound<'py, PyAny>, Numbers, Numbers)> {
    let py = array.py();
    let ends: SmallVec<[(i64, i64); 4]> =
        window.iter().zip(&origin).map(|(&(first, end), at)| (at + first, at + end)).collect();
    let first = window.iter().map(|&(first, _)| -first).collect();
    if ends.iter().zip(&shape).all(|(&ends, &extent)| ends == (0, extent)) {
        return Ok((array.clone(), shape, first));
    }
    if let Some((at, &(low, high))) = ends
        .iter()
        .enumerate()
        .find(|&(at, &(low, high))| low < 0 || high > shape.get(at).copied().unwrap_or(0))
    {
        return Err(PyValueError::new_err(format!(
            "run: expected a domain inside the output, got points {low} to {high} of {shape:?} along \
             dimension {at}"
        )));
    }
    let slice = |&(low, high): &(i64, i64)| -> PyResult<Bound<'py, PyAny>> {
        let (low, high) = (isize::try_from(low)?, isize::try_from(high)?);
        Ok(PySlice::new(py, low, high, 1).into_any())
    };
    let mut key = ends.iter().map(slice).collect::<PyResult<Vec<_>>>()?;
    key.push(PyEllipsis::get(py).to_owned().into_any());
    let part = array.get_item(PyTuple::new(py, key)?)?;
    let shape = ends.iter().map(|&(low, high)| high - low).collect();
    Ok((part, shape, first))
}

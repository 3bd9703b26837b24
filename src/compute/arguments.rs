//! The arguments of a reduction.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyInt, PyString, PyTuple};
use smallvec::SmallVec;

use crate::field::{Dim, Dims, show_dims};
use crate::protocol;
use crate::python::numpy::is_number;
use crate::python::storage::PyStorage;

/// The arguments of a call, by the names that NumPy gives them.
#[derive(Default)]
pub(super) struct Arguments<'py> {
    pub(super) array: Option<Bound<'py, PyAny>>,
    /// `None` for all axes.
    pub(super) axis: Option<Bound<'py, PyAny>>,
    pub(super) dtype: Option<Bound<'py, PyAny>>,
    pub(super) out: Option<Bound<'py, PyAny>>,
    /// The argument `where`.
    pub(super) mask: Option<Bound<'py, PyAny>>,
    pub(super) keepdims: bool,
    /// Other keywords for NumPy.
    pub(super) options: Option<Bound<'py, PyDict>>,
}

impl<'py> Arguments<'py> {
    pub(super) fn of(array: &Bound<'py, PyAny>) -> Self {
        Self { array: Some(array.clone()), ..Self::default() }
    }

    /// Takes an argument, unless it is NumPy's sign for one that is not given. `where` may be as Rust
    /// writes it.
    pub(super) fn put(&mut self, name: &str, value: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = value.py();
        if value.is(no_value(py)?) {
            return Ok(());
        }
        let set = Some(value.clone()).filter(|value| !value.is_none());
        match name {
            "a" | "x" => self.array = Some(value.clone()),
            "axis" => self.axis = set,
            "dtype" => self.dtype = set,
            // NumPy hands an output to a method of a universal function in a tuple.
            "out" => {
                self.out = match value.cast::<PyTuple>() {
                    Ok(outputs) if outputs.len() == 1 => {
                        Some(outputs.get_item(0)?).filter(|out| !out.is_none())
                    }
                    _ => set,
                }
            }
            "where" | "r#where" => self.mask = set.filter(|mask| !is_true(mask)),
            "keepdims" => self.keepdims = value.is_truthy()?,
            "overwrite_input" => {} // the values of a storage stay
            "include_initial" if !value.is_truthy()? => {}
            "include_initial" => {
                return Err(PyTypeError::new_err(
                    "include_initial: expected False, since a dimension keeps its extent, got \
                     True; use to_numpy() of the storage",
                ));
            }
            _ => {
                let options = self.options.get_or_insert_with(|| PyDict::new(py));
                options.set_item(name, value)?;
            }
        }
        Ok(())
    }

    /// Takes an argument that may be left out.
    pub(super) fn put_some(
        &mut self,
        name: &str,
        value: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        value.map_or(Ok(()), |value| self.put(name, value))
    }

    /// Takes arguments by position, with their names, and by name.
    pub(super) fn put_all(
        &mut self,
        names: &[Py<PyString>],
        args: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
        what: &str,
    ) -> PyResult<()> {
        if args.len() > names.len() {
            return Err(PyTypeError::new_err(format!(
                "{what}: expected at most {} arguments, got {}; pass them by name",
                names.len(),
                args.len()
            )));
        }
        for (name, value) in names.iter().zip(args.iter()) {
            self.put(&name.bind(args.py()).to_cow()?, &value)?;
        }
        for (name, value) in keywords.into_iter().flatten() {
            self.put(&name.cast::<PyString>()?.to_cow()?, &value)?;
        }
        Ok(())
    }

    /// True if `axis`, `dtype` and `out` say all.
    pub(super) fn is_plain(&self) -> bool {
        self.options.is_none() && self.mask.is_none() && !self.keepdims
    }
}

pub(super) fn is_true(mask: &Bound<'_, PyAny>) -> bool {
    mask.cast::<PyBool>().is_ok_and(|whole| whole.is_true())
}

fn no_value(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static NO_VALUE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    NO_VALUE.import(py, "numpy", "_NoValue")
}

/// The axes of a reduction.
pub(super) struct Reduces<'py> {
    pub(super) axes: SmallVec<[usize; 4]>,
    /// The same for NumPy: None, a number or a tuple.
    pub(super) value: Bound<'py, PyAny>,
}

impl<'py> Reduces<'py> {
    /// Reads axes by name or number.
    ///
    /// # Errors
    /// `ValueError` for a name that the array lacks and for an axis twice, NumPy's `AxisError`, and
    /// `TypeError` for an object that is neither name nor number.
    pub(super) fn read(
        py: Python<'py>,
        axis: Option<&Bound<'py, PyAny>>,
        ndim: usize,
        dims: Option<&Dims>,
        what: &str,
    ) -> PyResult<Self> {
        let Some(axis) = axis else {
            return Ok(Self { axes: (0..ndim).collect(), value: py.None().into_bound(py) });
        };
        let number = |axis: &Bound<'py, PyAny>| number(axis, ndim, dims, what);
        let is_one = axis.is_instance_of::<PyString>() || axis.is_instance_of::<PyInt>();
        if is_one || !axis.hasattr(intern!(py, "__iter__"))? || is_of_no_dimensions(axis)? {
            let axis = number(axis)?;
            let value = axis.into_pyobject(py)?.into_any();
            return Ok(Self { axes: SmallVec::from_elem(axis, 1), value });
        }
        let mut axes = SmallVec::<[usize; 4]>::new();
        for one in axis.try_iter()? {
            let one = number(&one?)?;
            if axes.contains(&one) {
                return Err(PyValueError::new_err(format!(
                    "{what}: expected each axis once, got {axis}; leave one out"
                )));
            }
            axes.push(one);
        }
        let value = PyTuple::new(py, &axes)?.into_any();
        Ok(Self { axes, value })
    }
}

/// True for an array without dimensions, which NumPy takes as a number.
fn is_of_no_dimensions(axis: &Bound<'_, PyAny>) -> PyResult<bool> {
    let ndim = axis.getattr_opt(intern!(axis.py(), "ndim"))?;
    Ok(ndim.is_some_and(|ndim| ndim.extract::<usize>().is_ok_and(|ndim| ndim == 0)))
}

fn number(
    axis: &Bound<'_, PyAny>,
    ndim: usize,
    dims: Option<&Dims>,
    what: &str,
) -> PyResult<usize> {
    if let Ok(name) = axis.cast::<PyString>() {
        let name = name.to_cow()?;
        let axis = dims.and_then(|dims| dims.iter().position(|dim| *dim == Dim::from_name(&name)));
        return axis.ok_or_else(|| unknown_name(&name, dims, what));
    }
    if axis.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(format!(
            "{what}: expected an axis by name or number, got {axis}; pass one of them, or none for all"
        )));
    }
    let at: i64 = axis.extract()?;
    let extent = i64::try_from(ndim).unwrap_or(i64::MAX);
    let from_start = if at < 0 { at.saturating_add(extent) } else { at };
    let is_of_number = ndim == 0 && (at == 0 || at == -1); // as NumPy, which then reduces nothing
    match usize::try_from(from_start) {
        _ if is_of_number => Ok(0),
        Ok(axis) if axis < ndim => Ok(axis),
        _ => Err(outside(axis.py(), at, ndim, what)),
    }
}

fn unknown_name(name: &str, dims: Option<&Dims>, what: &str) -> PyErr {
    let has = dims.map_or_else(
        || "without dims".to_owned(),
        |dims| format!("with the dims {}", show_dims(dims)),
    );
    PyValueError::new_err(format!(
        "{what}: expected an axis of the storage, got '{name}' of one {has}; pass one of its names \
         or a number"
    ))
}

/// NumPy's error, which is a `ValueError` and an `IndexError`.
fn outside(py: Python<'_>, at: i64, ndim: usize, what: &str) -> PyErr {
    let text = format!(
        "{what}: expected an axis of {ndim} dimensions, got {at}; pass a name or a smaller number"
    );
    let error =
        py.import("numpy.exceptions").and_then(|module| module.call_method1("AxisError", (text,)));
    error.map_or_else(|error| error, PyErr::from_value)
}

/// An option of a reduction as NumPy takes it: a storage as an array, which goes by position.
///
/// # Errors
/// `ValueError` for an array with names other than those of `known`, of which the first is told.
pub(super) fn by_position<'py>(
    name: &str,
    value: &Bound<'py, PyAny>,
    known: [Option<&Dims>; 2],
    what: &str,
) -> PyResult<Bound<'py, PyAny>> {
    if is_number(value) {
        return Ok(value.clone());
    }
    let own = protocol::dims(value)?.filter(|own| !own.is_empty());
    let mut known = known.into_iter().flatten();
    if let (Some(own), Some(dims)) = (own, known.next())
        && own != *dims
        && known.all(|others| own != *others)
    {
        return Err(PyValueError::new_err(format!(
            "{what}: expected {name} with the dims {}, got {}; pass to_numpy() of it to go by position",
            show_dims(dims),
            show_dims(&own)
        )));
    }
    match value.is_instance_of::<PyStorage>() {
        true => value.call_method0(intern!(value.py(), "to_numpy")),
        false => Ok(value.clone()),
    }
}

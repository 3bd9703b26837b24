//! The operands of a function: what NumPy computes with, and what is known of it as a field.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyTuple, PyType};

use crate::dtype::DType;
use crate::error::{Error, Failure};
use crate::field::{Axes, Field, Halo, Operand};
use crate::layout::Extents;
use crate::managed::Managed;
use crate::protocol::{Request, import, is_plain_ndarray};
use crate::python::numpy::{array_over, dtype_to, import_converted};
use crate::python::storage::PyStorage;
use crate::storage::Residence;

/// An operand.
pub(super) enum Given<'py> {
    /// A number, or what NumPy takes for one.
    Number(Bound<'py, PyAny>),
    /// An array of exactly NumPy's class.
    Array(Bound<'py, PyAny>, Extents),
    /// The buffer of a storage on the host.
    Storage(Managed, Arc<Field>),
    /// Memory of another library, perhaps with names.
    Foreign(Managed, Option<Box<Field>>),
}

impl<'py> Given<'py> {
    /// Reads an object; `None` if it is to decide what happens.
    pub(super) fn read(object: &Bound<'py, PyAny>, what: &str) -> PyResult<Option<Self>> {
        let py = object.py();
        if let Ok(storage) = object.cast::<PyStorage>() {
            let memory = on_host(storage, what)?;
            let field = storage.get().storage().field();
            return Ok(Some(Self::Storage(memory.clone(), field)));
        }
        if is_number(object) {
            return Ok(Some(Self::Number(object.clone())));
        }
        if is_plain_ndarray(object) {
            return Self::array(object.clone()).map(Some);
        }
        if object.is_none() || object.is_instance(numpys_class(py, "generic")?)? {
            return Ok(Some(Self::Number(object.clone())));
        }
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            let numpy = py.import(intern!(py, "numpy"))?;
            return Self::array(numpy.call_method1(intern!(py, "asarray"), (object,))?).map(Some);
        }
        if has_the_last_word(object)? { Ok(None) } else { Self::foreign(object, what).map(Some) }
    }

    fn array(array: Bound<'py, PyAny>) -> PyResult<Self> {
        let shape = array.getattr(intern!(array.py(), "shape"))?.extract::<Vec<i64>>()?;
        Ok(if shape.is_empty() { Self::Number(array) } else { Self::Array(array, shape.into()) })
    }

    /// An array of another library, or an object that NumPy takes for an element.
    fn foreign(object: &Bound<'py, PyAny>, what: &str) -> PyResult<Self> {
        let arrival = match import(object, Request::SHARED) {
            Err(Failure::Ours(Error::Type(_))) => return Ok(Self::Number(object.clone())),
            Err(Failure::Ours(Error::Buffer(text))) => {
                let copy = import_converted(object, None)?;
                copy.ok_or(Error::Buffer(text))?
            }
            other => other?,
        };
        if !arrival.memory.device().is_host() {
            return Err(Error::Buffer(format!(
                "{what}: expected arrays on the host, where the storages are, got memory on {}; \
                 copy it with dlfield.storage(array, device='cpu')",
                arrival.memory.device()
            ))
            .into());
        }
        let halo = || Some(Halo::from_elem((0, 0), arrival.memory.layout().ndim()));
        let named = |dims| Box::new(Field { dims: Some(dims), halo: halo(), ..Field::default() });
        let field = arrival.dims().cloned().map(named);
        Ok(Self::Foreign(arrival.acquired(object.py())?, field))
    }

    /// Shape and labels; `None` for a number.
    pub(super) fn operand(&self) -> Option<Operand<'_>> {
        Some(match self {
            Self::Number(_) => return None,
            Self::Array(_, shape) => Operand { shape, field: None },
            Self::Storage(memory, field) => {
                Operand { shape: memory.layout().shape(), field: Some(field) }
            }
            Self::Foreign(memory, field) => {
                Operand { shape: memory.layout().shape(), field: field.as_deref() }
            }
        })
    }

    /// The ranks of a storage.
    pub(super) fn ranks(&self) -> Option<Extents> {
        match self {
            Self::Storage(memory, field) => {
                Some(memory.layout().ranks(field.order.as_deref().unwrap_or_default()))
            }
            _ => None,
        }
    }

    /// The type, if the result's follows from it whatever the values are.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self {
            Self::Storage(memory, _) => Some(Kind::Items(memory.dtype())),
            Self::Number(number) => Kind::of_number(number),
            _ => None,
        }
    }

    /// A stand-in without elements, from which NumPy tells the type of a result.
    pub(super) fn stand_in(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let dtype = match self {
            Self::Number(number) => return Ok(number.clone()),
            Self::Array(array, _) => array.getattr(intern!(py, "dtype"))?,
            Self::Storage(memory, _) | Self::Foreign(memory, _) => dtype_to(py, memory.dtype())?,
        };
        py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "empty"), (0, dtype))
    }

    /// The object that NumPy computes with; its axes have the order of the result.
    pub(super) fn value(&self, py: Python<'py>, axes: &Axes) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Number(number) => Ok(number.clone()),
            Self::Array(array, shape) => moved(array.clone(), shape.len(), axes),
            Self::Storage(memory, _) | Self::Foreign(memory, _) => {
                moved(array_over(py, memory, true)?, memory.layout().ndim(), axes)
            }
        }
    }
}

/// A type of an operand that decides on the type of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Items(DType),
    /// Numbers of Python's, whose values do not count (NEP 50).
    Float,
    Int,
}

impl Kind {
    fn of_number(number: &Bound<'_, PyAny>) -> Option<Self> {
        if number.is_exact_instance_of::<PyFloat>() {
            return Some(Self::Float);
        }
        number.is_exact_instance_of::<PyInt>().then_some(Self::Int)
    }
}

/// The buffer of a storage in host memory.
///
/// # Errors
/// `TypeError` with the way out for a storage on a GPU.
pub(super) fn on_host<'a>(storage: &'a Bound<'_, PyStorage>, what: &str) -> PyResult<&'a Managed> {
    let (py, object) = (storage.py(), storage.get());
    if object.storage().residence() == Residence::Host {
        return object.host(py, what);
    }
    let class = storage.get_type();
    let way_out = py.import("dlfield._methods")?.call_method1("way_out", (storage,))?;
    Err(Error::Type(format!(
        "{what}: expected arrays on the host, got a {}, which has no arithmetic; {way_out}",
        class.name()?
    ))
    .into())
}

fn is_number(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyComplex>()
}

/// A class of NumPy's.
pub(super) fn numpys_class<'py>(
    py: Python<'py>,
    name: &'static str,
) -> PyResult<&'py Bound<'py, PyType>> {
    static GENERIC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static ARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let known = if name == "generic" { &GENERIC } else { &ARRAY };
    known.import(py, "numpy", name)
}

/// True for an array that decides itself what a function of it and a storage is: one with universal
/// functions of its own (xarray, Dask, pandas), and a field of `gt4py.next`. Arrays of CuPy are
/// operands like any other.
pub(super) fn has_the_last_word(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let (py, class) = (object.py(), object.get_type());
    let module = class.getattr_opt(intern!(py, "__module__"))?;
    let module = module.and_then(|module| module.extract::<String>().ok()).unwrap_or_default();
    let is_of = |package: &str| module.strip_prefix(package).is_some_and(is_end);
    if is_of("gt4py.next") {
        return Ok(true);
    }
    let name = intern!(py, "__array_ufunc__");
    let Some(own) = class.getattr_opt(name)? else { return Ok(false) };
    Ok(!own.is(&numpys_class(py, "ndarray")?.getattr(name)?) && !is_of("cupy"))
}

/// True for what may follow the name of a package.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('.')
}

/// An array with its axes in the order of a result: `axes` as in [`crate::field::Joined`].
fn moved<'py>(array: Bound<'py, PyAny>, ndim: usize, axes: &Axes) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let kept = axes.iter().skip_while(|axis| axis.is_none());
    if kept.copied().eq((0..ndim).map(Some)) {
        return Ok(array); // NumPy adds dimensions in front itself
    }
    let all = pyo3::types::PySlice::full(py).into_any();
    let first = |axis: usize| match axes.contains(&Some(axis)) {
        true => Ok(all.clone()),
        false => Ok(0_usize.into_pyobject(py)?.into_any()), // of extent 1
    };
    let key = (0..ndim).map(first).collect::<PyResult<Vec<_>>>()?;
    let named: Vec<usize> = axes.iter().copied().flatten().collect();
    let place = |axis: &usize| named.iter().filter(|other| *other < axis).count();
    let order: Vec<usize> = named.iter().map(place).collect();
    let new =
        |axis: &Option<usize>| if axis.is_some() { all.clone() } else { py.None().into_bound(py) };
    let added = PyTuple::new(py, axes.iter().map(new))?;
    let picked = array.get_item(PyTuple::new(py, key)?)?;
    picked.call_method1(intern!(py, "transpose"), (order,))?.get_item(added)
}

//! NumPy's protocol for universal functions, and the same for functions that are like them.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple};

use super::compute::{Call, not_elementwise};
use super::reductions::by_method;
use crate::python::storage::PyStorage;

#[pymethods]
impl PyStorage {
    /// Compute a universal function by the names of the dimensions (NEP 13).
    ///
    /// The result has the dims of the first storage, then what the others add; the largest halo and
    /// origin; the type that NumPy gives it; and the layout of the first storage that has all dims.
    /// `out`, `where`, `dtype` and `casting` mean what they mean in NumPy. On a GPU CuPy computes.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     For dims in different orders, different extents under one name, unrelated dims, and arrays
    ///     without names that fit nothing.
    /// TypeError
    ///     For functions of matrices, and for those that CuPy lacks for memory on a GPU.
    /// BufferError
    ///     For arrays that are not where the function computes.
    /// ImportError
    ///     For memory on a GPU without CuPy.
    #[pyo3(signature = (ufunc, method, *inputs, **options))]
    fn __array_ufunc__<'py>(
        slf: &Bound<'py, Self>,
        ufunc: &Bound<'py, PyAny>,
        method: &Bound<'py, PyString>,
        inputs: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let name = ufunc.getattr(intern!(py, "__name__"))?.cast_into::<PyString>()?;
        let name = format!("numpy.{}", name.to_cow()?);
        if method.to_cow()? != "__call__" {
            let found = by_method(ufunc, method, inputs, options, &name)?;
            return Ok(found.unwrap_or_else(|| py.NotImplemented().into_bound(py)));
        }
        if !ufunc.getattr(intern!(py, "signature"))?.is_none() {
            return Err(not_elementwise(&name).into());
        }
        let results = ufunc.getattr(intern!(py, "nout"))?.extract()?;
        elementwise(ufunc, inputs, results, &name, options)
    }

    /// GDP-3's draft: storages that are kept in step come before others.
    #[getter]
    fn __array_priority__(&self) -> f64 {
        use crate::storage::Residence;
        match self.storage().residence() {
            Residence::Host | Residence::Device(_) => 10.0,
            Residence::Mirrored(_) | Residence::Unified(_) => 11.0,
        }
    }
}

/// Call a function of NumPy element by element: `function(*inputs, *outputs, **options)`.
///
/// The function has `results` results, and takes that many outputs by position. Gives
/// NotImplemented if an operand is to decide what happens.
#[pyfunction]
#[pyo3(signature = (function, inputs, results = 1, name = "dlfield", options = None))]
pub(in crate::python) fn elementwise<'py>(
    function: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyTuple>,
    results: usize,
    name: &str,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let inputs: Vec<_> = inputs.iter().collect();
    let options =
        options.filter(|options| !options.is_empty()).map(|one| one.copy()).transpose()?;
    let mut call = Call { function, name, inputs: &inputs, out: &[], mask: None, options: None };
    let mut out = vec![None; results];
    if let Some(options) = options {
        if let Some(given) = take(&options, "out")? {
            out = outputs(&given, results, name)?;
        }
        let mask = take(&options, "where")?
            .filter(|mask| !mask.cast::<PyBool>().is_ok_and(|whole| whole.is_true()));
        call.mask = mask;
        take(&options, "subok")?;
        check_order(&options, name)?;
        call.options = Some(options).filter(|options| !options.is_empty());
    }
    call.out = &out;
    Ok(call.run(py)?.unwrap_or_else(|| py.NotImplemented().into_bound(py)))
}

fn take<'py>(options: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let found = options.get_item(name)?;
    if found.is_some() {
        options.del_item(name)?;
    }
    Ok(found.filter(|found| !found.is_none()))
}

/// The outputs of the caller: one, or a tuple with one for each result.
fn outputs<'py>(
    given: &Bound<'py, PyAny>,
    results: usize,
    name: &str,
) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
    let several = match given.cast::<PyTuple>() {
        Ok(several) => several.iter().map(|one| Some(one).filter(|one| !one.is_none())).collect(),
        Err(_) => vec![Some(given.clone())],
    };
    if several.len() == results {
        return Ok(several);
    }
    Err(PyValueError::new_err(format!(
        "{name}: expected {results} arrays as out, got {}; pass None for those to be made",
        several.len()
    )))
}

/// The layout of a result is that of the operands.
fn check_order(options: &Bound<'_, PyDict>, name: &str) -> PyResult<()> {
    let Some(order) = take(options, "order")? else { return Ok(()) };
    match order.extract::<String>() {
        Ok(order) if order == "K" || order == "A" => Ok(()),
        _ => Err(PyTypeError::new_err(format!(
            "{name}: expected order='K', since a result has the layout of the storages, got \
             {order}; pass an out= with the layout you want"
        ))),
    }
}

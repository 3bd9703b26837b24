//! NumPy's protocol for universal functions, and the same for functions that are like them.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;

use super::arguments::{Arguments, is_true};
use super::lift::Names;
use super::others::Others;
use super::pointwise::{Call, not_elementwise};
use super::reduce::Reduction;
use super::types::{Signature, Ufunc};
use crate::interpreter::has_matched_dims;
use crate::python::storage::PyStorage;

#[pymethods]
impl PyStorage {
    /// Compute a universal function by the names of the dimensions (NEP 13).
    ///
    /// The result has the dims of the first operand that has all of them, else the order I, J, K and
    /// data dims if GT4Py knows all, else the dims of the first, then what the others add; the largest
    /// halo and origin; the type that NumPy gives it; and the layout of the first storage that has all.
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
        &self,
        ufunc: &Bound<'py, PyAny>,
        method: &Bound<'py, PyString>,
        inputs: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Ufunc { name, results, has_core_dims } = &*Ufunc::of(ufunc)?;
        if method.to_cow()? != "__call__" {
            return by_method(ufunc, method, inputs, options, name);
        }
        if *has_core_dims {
            return match has_matched_dims(ufunc.py())? {
                true => by_method(ufunc, method, inputs, options, name),
                false => Err(not_elementwise(name).into()),
            };
        }
        let as_one = (Names::Shared, Others::Decide);
        compute(ufunc, inputs, *results, name, options, as_one)
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
/// The function has `results` results, and takes that many outputs by position. Arrays of other
/// libraries are operands, too: a DataArray goes by the names of its dims. With `outer` the operands
/// need not be related, and their dims follow one another.
#[pyfunction]
#[pyo3(signature = (function, inputs, results = 1, name = "dlfield", options = None, *, outer = false))]
pub(crate) fn elementwise<'py>(
    function: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyTuple>,
    results: usize,
    name: &str,
    options: Option<&Bound<'py, PyDict>>,
    outer: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let names = if outer { Names::Apart } else { Names::Shared };
    compute(function, inputs, results, name, options, (names, Others::AreRead))
}

/// As [`elementwise`]. The result is NotImplemented if an operand is to decide what happens: none does
/// if the result goes into a storage.
fn compute<'py>(
    function: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyTuple>,
    results: usize,
    name: &str,
    options: Option<&Bound<'py, PyDict>>,
    rules: (Names, Others),
) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let inputs: SmallVec<[_; 4]> = inputs.iter().collect();
    let mut out = Out::from_elem(None, results);
    let inputs = &*inputs;
    let (names, others) = rules;
    let mut order = None;
    let mut call =
        Call { function, name, inputs, out: &[], mask: None, names, options: None, others };
    for (key, value) in options.into_iter().flatten() {
        let key = key.cast_into::<PyString>()?;
        let set = Some(&value).filter(|value| !value.is_none());
        match (&*key.to_cow()?, set) {
            ("out", Some(set)) => out = outputs(set, results, name)?,
            ("where", Some(mask)) if !is_true(mask) => call.mask = Some(mask.clone()),
            ("order", Some(set)) => order = Some(set.clone()),
            ("out" | "where" | "order" | "subok", _) => {}
            _ => call.options.get_or_insert_with(|| PyDict::new(py)).set_item(&key, &value)?,
        }
    }
    if let Some(order) = order.filter(|_| out.iter().any(Option::is_none)) {
        check_order(&order, name)?;
    }
    call.out = &out;
    if out.iter().all(|one| one.as_ref().is_some_and(|one| one.is_instance_of::<PyStorage>())) {
        call.others = Others::AreRead;
    }
    Ok(call.run(py)?.unwrap_or_else(|| py.NotImplemented().into_bound(py)))
}

type Out<'py> = SmallVec<[Option<Bound<'py, PyAny>>; 2]>;

/// The outputs of the caller: one, or a tuple with one for each result.
fn outputs<'py>(out: &Bound<'py, PyAny>, results: usize, name: &str) -> PyResult<Out<'py>> {
    let several: Out<'py> = match out.cast::<PyTuple>() {
        Ok(several) => several.iter().map(|one| Some(one).filter(|one| !one.is_none())).collect(),
        Err(_) => Out::from_elem(Some(out.clone()), 1),
    };
    if several.len() == results {
        return Ok(several);
    }
    Err(PyValueError::new_err(format!(
        "{name}: expected {results} arrays as out, got {}; pass None for those to be made",
        several.len()
    )))
}

/// The layout of a new result is that of the operands.
fn check_order(order: &Bound<'_, PyAny>, name: &str) -> PyResult<()> {
    match order.extract::<String>() {
        Ok(order) if order == "K" || order == "A" => Ok(()),
        _ => Err(PyTypeError::new_err(format!(
            "{name}: expected order='K', since a result has the layout of the storages, got \
             {order}; pass an out= with the layout you want"
        ))),
    }
}

/// Calls a method of a universal function, with what NumPy hands to `__array_ufunc__`.
///
/// # Errors
/// Those of NumPy, and of names, orders and extents that do not go together.
fn by_method<'py>(
    ufunc: &Bound<'py, PyAny>,
    method: &Bound<'py, PyString>,
    inputs: &Bound<'py, PyTuple>,
    options: Option<&Bound<'py, PyDict>>,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let py = ufunc.py();
    let text = method.to_cow()?;
    let signature = match &*text {
        "reduce" => Signature::Reduced,
        "accumulate" => Signature::Accumulated,
        _ => {
            let others = py.import(intern!(py, "dlfield.functions.ufuncs"))?;
            let compute = others.getattr(intern!(py, "METHODS"))?.get_item(method)?;
            let options = options.cloned().unwrap_or_else(|| PyDict::new(py));
            return compute.call1((ufunc, inputs, options));
        }
    };
    let axis = Some(0_usize.into_pyobject(py)?.into_any());
    let mut arguments = Arguments { axis, ..Arguments::default() };
    arguments.put_some("a", inputs.iter().next().as_ref())?;
    for (name, value) in options.into_iter().flatten() {
        arguments.put(&name.cast::<PyString>()?.to_cow()?, &value)?;
    }
    let (name, function) = (&format!("{name}.{text}"), &ufunc.getattr(method)?);
    let (short, ufunc) = (Some(function), Some(ufunc));
    Reduction { name, function, short, ufunc, signature }.run(py, &arguments)
}

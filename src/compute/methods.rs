//! Reductions as methods of storages, and NumPy's protocol for its functions.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::asked::Asked;
use super::given::numpys_class;
use super::reductions::{method, reduction_of};
use crate::python::storage::PyStorage;
use crate::storage::Residence;

/// Defines methods that are functions of NumPy, with the arguments of NumPy's methods.
macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident [$($signature:tt)*] ($($given:ident),*);)+) => {$(
        #[pymethods]
        impl PyStorage {
            $(#[$doc])*
            #[pyo3(signature = ($($signature)*))]
            #[allow(clippy::too_many_arguments, reason = "NumPy's")]
            fn $name<'py>(
                slf: &Bound<'py, Self>,
                $($given: Option<&Bound<'py, PyAny>>),*
            ) -> PyResult<Bound<'py, PyAny>> {
                let mut asked = Asked::of(slf.as_any());
                $(if let Some(given) = $given {
                    asked.put(stringify!($given), given)?;
                })*
                method(slf.py(), concat!("numpy.", stringify!($name)), &asked)
            }
        }
    )+};
}

reductions! {
    /// Sum along dimensions, as `numpy.sum`.
    ///
    /// Parameters
    /// ----------
    /// axis
    ///     Name or number of a dimension, or several; all by default.
    /// dtype, out, keepdims, initial
    ///     As in NumPy. `out` may have more dims than the result, which is repeated along them.
    /// where
    ///     A mask. One with names goes by name.
    ///
    /// Returns
    /// -------
    /// Storage or a number of NumPy's
    ///     With the dims that stay, and their halo, origin and order in memory. A number if none
    ///     stays.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     For a name that the storage lacks, and a mask or `out` that does not fit.
    /// TypeError
    ///     For memory on a GPU.
    sum[axis = None, dtype = None, out = None, keepdims = None, initial = None, r#where = None]
        (axis, dtype, out, keepdims, initial, r#where);
    /// Multiply along dimensions, as `numpy.prod`, with the arguments of `sum`.
    prod[axis = None, dtype = None, out = None, keepdims = None, initial = None, r#where = None]
        (axis, dtype, out, keepdims, initial, r#where);
    /// Give the largest elements along dimensions, as `numpy.max`, with the arguments of `sum`.
    max[axis = None, out = None, keepdims = None, initial = None, r#where = None]
        (axis, out, keepdims, initial, r#where);
    /// Give the smallest elements along dimensions, as `numpy.min`, with the arguments of `sum`.
    min[axis = None, out = None, keepdims = None, initial = None, r#where = None]
        (axis, out, keepdims, initial, r#where);
    /// Tell if all elements along dimensions are true, as `numpy.all`, with the arguments of `sum`.
    all[axis = None, out = None, keepdims = None, *, r#where = None]
        (axis, out, keepdims, r#where);
    /// Tell if any element along dimensions is true, as `numpy.any`, with the arguments of `sum`.
    any[axis = None, out = None, keepdims = None, *, r#where = None]
        (axis, out, keepdims, r#where);
    /// Average along dimensions, as `numpy.mean`, with the arguments of `sum`.
    mean[axis = None, dtype = None, out = None, keepdims = None, *, r#where = None]
        (axis, dtype, out, keepdims, r#where);
    /// Give standard deviations along dimensions, as `numpy.std`, with the arguments of `sum`.
    std[
        axis = None, dtype = None, out = None, ddof = None, keepdims = None, *, r#where = None,
        mean = None, correction = None
    ](axis, dtype, out, ddof, keepdims, r#where, mean, correction);
    /// Give variances along dimensions, as `numpy.var`, with the arguments of `sum`.
    var[
        axis = None, dtype = None, out = None, ddof = None, keepdims = None, *, r#where = None,
        mean = None, correction = None
    ](axis, dtype, out, ddof, keepdims, r#where, mean, correction);
    /// Give the indices of the largest elements along a dimension, as `numpy.argmax`.
    ///
    /// Without an axis the index counts all elements in C order, whatever the order in memory.
    argmax[axis = None, out = None, *, keepdims = None](axis, out, keepdims);
    /// Give the indices of the smallest elements along a dimension, as `numpy.argmin`.
    ///
    /// Without an axis the index counts all elements in C order, whatever the order in memory.
    argmin[axis = None, out = None, *, keepdims = None](axis, out, keepdims);
    /// Give running sums along a dimension, as `numpy.cumsum`; all labels stay.
    ///
    /// The axis may be left out for a single dimension.
    cumsum[axis = None, dtype = None, out = None](axis, dtype, out);
    /// Give running products along a dimension, as `numpy.cumprod`; all labels stay.
    ///
    /// The axis may be left out for a single dimension.
    cumprod[axis = None, dtype = None, out = None](axis, dtype, out);
}

#[pymethods]
impl PyStorage {
    /// Call what a function of NumPy means for storages, or raise TypeError (NEP 18).
    ///
    /// Views and new storages keep names and halo where they are clear. An axis may be a name.
    /// ``docs/functions.md`` has a table of all functions.
    fn __array_function__<'py>(
        slf: &Bound<'py, Self>,
        func: &Bound<'py, PyAny>,
        types: &Bound<'py, PyAny>,
        args: &Bound<'py, PyAny>,
        kwargs: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let on_host = slf.get().storage().residence() == Residence::Host;
        if on_host
            && let (Ok(args), Ok(kwargs)) = (args.cast::<PyTuple>(), kwargs.cast::<PyDict>())
            && let Some(reduction) = reduction_of(func)?
            && are_plain(types)?
        {
            return reduction.call_with(args, Some(kwargs));
        }
        let functions = py.import(intern!(py, "dlfield.functions.dispatch"))?;
        functions.call_method1(intern!(py, "dispatch"), (slf, func, types, args, kwargs))
    }
}

/// True if there are no arrays but storages and those of NumPy's own class.
fn are_plain(types: &Bound<'_, PyAny>) -> PyResult<bool> {
    let storage = types.py().get_type::<PyStorage>();
    for class in types.try_iter()? {
        let class = class?;
        let is_storage = class.cast::<PyType>()?.is_subclass(&storage)?;
        if !is_storage && !class.is(numpys_class(types.py(), "ndarray")?) {
            return Ok(false);
        }
    }
    Ok(true)
}

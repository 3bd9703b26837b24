//! NumPy's functions that reduce: the list of them, the methods of storages among them, and
//! `__array_function__`. `reduce` computes them.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};

use super::arguments::Arguments;
use super::others::numpys_class;
use super::reduce::Reduction;
use super::types::Signature;
use crate::python::storage::PyStorage;
use crate::storage::Residence;

/// A function of NumPy that reduces. A version of NumPy may lack it.
struct Function {
    /// `numpy.` and its name.
    name: &'static str,
    /// The attributes of `numpy` that lead to [`Reduction::short`]; empty if there is none.
    short: &'static [&'static str],
    signature: Signature,
    loaded: PyOnceLock<Loaded>,
}

/// The objects of NumPy that a function needs. They are looked up once.
struct Loaded {
    function: Py<PyAny>,
    short: Option<Py<PyAny>>,
    /// The names of the function's arguments.
    parameters: Vec<Py<PyString>>,
}

/// Defines the functions that reduce, and the methods among them with the arguments of NumPy's
/// methods. Those after the semicolon are keyword-only.
macro_rules! functions {
    (
        methods {$(
            $(#[$doc:meta])*
            $name:ident($($argument:ident),* $(; $($keyword:ident),*)?) $signature:ident $short:tt;
        )+}
        others {$($other_signature:ident $other_short:tt: $($other:ident)+;)+}
    ) => {
        /// All functions; those that are methods come first.
        static FUNCTIONS: [Function; 35] = [
            $(Function::new(concat!("numpy.", stringify!($name)), Signature::$signature, &$short),)+
            $($(Function::new(
                concat!("numpy.", stringify!($other)), Signature::$other_signature, &$other_short,
            ),)+)+
        ];

        /// The indices of the methods in [`FUNCTIONS`].
        #[allow(non_camel_case_types, reason = "names of Python's methods")]
        enum Method { $($name),+ }

        $(
            #[pymethods]
            impl PyStorage {
                $(#[$doc])*
                #[pyo3(signature = ($($argument = None,)* $(*, $($keyword = None),*)?))]
                #[allow(clippy::too_many_arguments, reason = "NumPy's signatures")]
                fn $name<'py>(
                    slf: &Bound<'py, Self>,
                    $($argument: Option<&Bound<'py, PyAny>>,)*
                    $($($keyword: Option<&Bound<'py, PyAny>>,)*)?
                ) -> PyResult<Bound<'py, PyAny>> {
                    let mut arguments = Arguments::of(slf.as_any());
                    $(arguments.put_some(stringify!($argument), $argument)?;)*
                    $($(arguments.put_some(stringify!($keyword), $keyword)?;)*)?
                    FUNCTIONS[Method::$name as usize].call(slf.py(), &arguments)
                }
            }
        )+
    };
}

functions! {
    methods {
        /// Sum along dimensions, as `numpy.sum`.
        ///
        /// Halo points count: `storage.domain_view.sum()` leaves them out.
        ///
        /// Parameters
        /// ----------
        /// axis
        ///     Name or number of a dimension, or several; all by default.
        /// dtype, out, keepdims, initial
        ///     As in NumPy. `out` may have more dims than the result, which is repeated along them.
        /// where
        ///     A mask. A mask with names is matched by name.
        ///
        /// Returns
        /// -------
        /// Storage or a number of NumPy's
        ///     With the remaining dims, and their halo, origin and order in memory. A number if no dim
        ///     remains; on a GPU, where CuPy computes, a storage without dims.
        ///
        /// Raises
        /// ------
        /// ValueError
        ///     For a name that the storage lacks, and a mask or `out` that does not fit.
        /// TypeError
        ///     For `initial` and `where` with memory on a GPU.
        /// ImportError
        ///     For memory on a GPU without CuPy.
        sum(axis, dtype, out, keepdims, initial, r#where) Reduced ["add", "reduce"];
        /// Multiply along dimensions, as `numpy.prod`, with the arguments of `sum`.
        prod(axis, dtype, out, keepdims, initial, r#where) Reduced ["multiply", "reduce"];
        /// Return the largest elements along dimensions, as `numpy.max`, with the arguments of `sum`.
        max(axis, out, keepdims, initial, r#where) Reduced ["maximum", "reduce"];
        /// Return the smallest elements along dimensions, as `numpy.min`, with the arguments of `sum`.
        min(axis, out, keepdims, initial, r#where) Reduced ["minimum", "reduce"];
        /// Return whether all elements along dimensions are true, as `numpy.all`, with the arguments of `sum`.
        all(axis, out, keepdims; r#where) ReducedToTruth ["logical_and", "reduce"];
        /// Return whether any element along dimensions is true, as `numpy.any`, with the arguments of `sum`.
        any(axis, out, keepdims; r#where) ReducedToTruth ["logical_or", "reduce"];
        /// Average along dimensions, as `numpy.mean`, with the arguments of `sum`.
        ///
        /// Halo points count: `storage.domain_view.mean()` leaves them out.
        mean(axis, dtype, out, keepdims; r#where) Reduced ["ndarray", "mean"];
        /// Return standard deviations along dimensions, as `numpy.std`, with the arguments of `sum`.
        std(axis, dtype, out, ddof, keepdims; r#where, mean, correction) Reduced ["ndarray", "std"];
        /// Return variances along dimensions, as `numpy.var`, with the arguments of `sum`.
        var(axis, dtype, out, ddof, keepdims; r#where, mean, correction) Reduced ["ndarray", "var"];
        /// Return the indices of the largest elements along a dimension, as `numpy.argmax`.
        ///
        /// Without an axis the index counts all elements in C order, whatever the order in memory.
        argmax(axis, out; keepdims) ReducedToIndex ["ndarray", "argmax"];
        /// Return the indices of the smallest elements along a dimension, as `numpy.argmin`.
        ///
        /// Without an axis the index counts all elements in C order, whatever the order in memory.
        argmin(axis, out; keepdims) ReducedToIndex ["ndarray", "argmin"];
        /// Return running sums along a dimension, as `numpy.cumsum`; all labels stay.
        ///
        /// The axis may be left out for a single dimension.
        cumsum(axis, dtype, out) Accumulated ["add", "accumulate"];
        /// Return running products along a dimension, as `numpy.cumprod`; all labels stay.
        ///
        /// The axis may be left out for a single dimension.
        cumprod(axis, dtype, out) Accumulated ["multiply", "accumulate"];
    }
    others {
        Reduced ["maximum", "reduce"]: amax;
        Reduced ["minimum", "reduce"]: amin;
        Accumulated ["add", "accumulate"]: cumulative_sum;
        Accumulated ["multiply", "accumulate"]: cumulative_prod;
        Accumulated []: nancumprod nancumsum;
        Reduced []: median nanargmax nanargmin nanmax nanmean nanmedian nanmin nanpercentile nanprod
            nanquantile nanstd nansum nanvar percentile ptp quantile;
    }
}

impl Function {
    const fn new(name: &'static str, signature: Signature, short: &'static [&'static str]) -> Self {
        Self { name, short, signature, loaded: PyOnceLock::new() }
    }

    fn attribute(&self) -> &'static str {
        self.name.strip_prefix("numpy.").unwrap_or(self.name)
    }

    fn load(&self, py: Python<'_>) -> PyResult<&Loaded> {
        self.loaded.get_or_try_init(py, || {
            let numpy = py.import(intern!(py, "numpy"))?;
            let function = numpy.getattr(self.attribute())?;
            let start = Some(numpy.into_any()).filter(|_| !self.short.is_empty());
            let path = |start| {
                self.short.iter().try_fold(start, |at: Bound<'_, _>, name| at.getattr(*name))
            };
            let short = start.map(path).transpose()?;
            let signature = py.import("inspect")?.call_method1("signature", (&function,))?;
            let names = signature.getattr("parameters")?.try_iter()?;
            let parameters = names.map(|name| Ok(name?.cast_into::<PyString>()?.unbind()));
            Ok(Loaded {
                parameters: parameters.collect::<PyResult<_>>()?,
                short: short.map(Bound::unbind),
                function: function.unbind(),
            })
        })
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        arguments: &Arguments<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let loaded = self.load(py)?;
        let (name, function, signature) = (self.name, loaded.function.bind(py), self.signature);
        let short = loaded.short.as_ref().map(|short| short.bind(py));
        Reduction { name, function, short, ufunc: None, signature }.run(py, arguments)
    }

    /// Calls the function with arguments as NumPy's function takes them.
    fn call_with<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let mut arguments = Arguments::default();
        arguments.put_all(&self.load(py)?.parameters, args, keywords, self.name)?;
        self.call(py, &arguments)
    }
}

/// Maps each function of the installed NumPy to its index in [`FUNCTIONS`].
fn indices(py: Python<'_>) -> PyResult<&Bound<'_, PyDict>> {
    static INDICES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let indices = INDICES.get_or_try_init(py, || {
        let numpy = py.import(intern!(py, "numpy"))?;
        let indices = PyDict::new(py);
        for (index, one) in FUNCTIONS.iter().enumerate() {
            if let Some(function) = numpy.getattr_opt(one.attribute())? {
                indices.set_item(function, index)?;
            }
        }
        PyResult::Ok(indices.unbind())
    })?;
    Ok(indices.bind(py))
}

/// The entry of a NumPy function, if it reduces.
fn entry_of(function: &Bound<'_, PyAny>) -> PyResult<Option<&'static Function>> {
    let index = indices(function.py())?.get_item(function)?;
    let index: Option<usize> = index.map(|index| index.extract()).transpose()?;
    Ok(index.and_then(|index| FUNCTIONS.get(index)))
}

/// Return the functions of NumPy that `reduced` computes.
#[pyfunction]
pub(crate) fn reducing_functions(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    Ok(indices(py)?.keys())
}

/// Call one of `reducing_functions()` with the other arguments.
///
/// The result has the remaining dims, with their halo, origin and order in memory.
#[pyfunction]
#[pyo3(signature = (function, /, *args, **keywords))]
pub(crate) fn reduced<'py>(
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(entry) = entry_of(function)? else {
        return Err(PyTypeError::new_err(format!(
            "function: expected one of reducing_functions(), got {function}; use to_numpy() of the \
             storages"
        )));
    };
    entry.call_with(args, keywords)
}

#[pymethods]
impl PyStorage {
    /// Call the equivalent of a NumPy function for storages, or raise TypeError (NEP 18).
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
            && let Some(entry) = entry_of(func)?
            && are_plain(types)?
        {
            return entry.call_with(args, Some(kwargs));
        }
        let functions = py.import(intern!(py, "dlfield.functions.dispatch"))?;
        functions.call_method1(intern!(py, "dispatch"), (slf, func, types, args, kwargs))
    }
}

/// True if all arrays are storages or of exactly NumPy's own class.
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

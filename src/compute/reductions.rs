//! The reductions of NumPy: what computes each of them, and how they are called.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::asked::Asked;
use super::given::Given;
use super::known::Way;
use super::outputs::Output;
use super::reduce::{AllGiven, Reducer, Reduces};
use super::site::Site;
use crate::interpreter::Inside;

impl<'py> Reducer<'_, 'py> {
    /// Computes; `None` if an array is to decide what happens. Nothing is written if it is refused.
    pub(super) fn run(
        &self,
        py: Python<'py>,
        asked: &Asked<'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let _inside = Inside::enter(py);
        let Some((given, output)) = self.read(asked)? else { return Ok(None) };
        let site = Site::choose(&given, 1, std::slice::from_ref(&output), self.name)?;
        match site.target.ordinal() {
            None => self.on_host(py, asked, site, given, output).map(Some),
            Some(ordinal) => self.on_gpu(py, asked, site, ordinal, &given, output).map(Some),
        }
    }

    /// Reads array, mask and output; `None` if one of them is to decide what happens.
    fn read(&self, asked: &Asked<'py>) -> PyResult<Option<(AllGiven<'py>, Option<Output<'py>>)>> {
        let Some(array) = &asked.array else { return Err(self.no_array()) };
        let mut given = AllGiven::new();
        for object in std::iter::once(array).chain(&asked.mask) {
            let beside_gpu = || asked.has_storage_on_gpu();
            let Some(one) = Given::read(object, self.name, beside_gpu)? else { return Ok(None) };
            given.push(one);
        }
        let output = asked.out.as_ref().map(|out| Output::read(out, self.name)).transpose()?;
        Ok(if matches!(output, Some(None)) { None } else { Some((given, output.flatten())) })
    }
}

/// A function of NumPy's.
pub(super) struct Reduction {
    /// `numpy.` and its name.
    name: &'static str,
    /// Where NumPy has [`Reducer::short`]; empty if nothing is.
    short: &'static [&'static str],
    kind: Reduces,
    found: PyOnceLock<Found>,
}

/// What is looked up once.
struct Found {
    function: Py<PyAny>,
    short: Option<Py<PyAny>>,
    /// The names of the function's arguments.
    parameters: Vec<Py<PyString>>,
}

const fn one(name: &'static str, short: &'static [&'static str], kind: Reduces) -> Reduction {
    Reduction { name, short, kind, found: PyOnceLock::new() }
}

/// All of them, those that are methods first. A version of NumPy may lack some.
static REDUCTIONS: [Reduction; 35] = [
    one("numpy.sum", &["add", "reduce"], Reduces::Number),
    one("numpy.max", &["maximum", "reduce"], Reduces::Number),
    one("numpy.min", &["minimum", "reduce"], Reduces::Number),
    one("numpy.mean", &["ndarray", "mean"], Reduces::Number),
    one("numpy.all", &["logical_and", "reduce"], Reduces::Truth),
    one("numpy.any", &["logical_or", "reduce"], Reduces::Truth),
    one("numpy.std", &["ndarray", "std"], Reduces::Number),
    one("numpy.var", &["ndarray", "var"], Reduces::Number),
    one("numpy.prod", &["multiply", "reduce"], Reduces::Number),
    one("numpy.argmax", &["ndarray", "argmax"], Reduces::Index),
    one("numpy.argmin", &["ndarray", "argmin"], Reduces::Index),
    one("numpy.cumsum", &["add", "accumulate"], Reduces::Running),
    one("numpy.cumprod", &["multiply", "accumulate"], Reduces::Running),
    one("numpy.amax", &["maximum", "reduce"], Reduces::Number),
    one("numpy.amin", &["minimum", "reduce"], Reduces::Number),
    one("numpy.cumulative_prod", &["multiply", "accumulate"], Reduces::Running),
    one("numpy.cumulative_sum", &["add", "accumulate"], Reduces::Running),
    one("numpy.median", &[], Reduces::Number),
    one("numpy.nanargmax", &[], Reduces::Number),
    one("numpy.nanargmin", &[], Reduces::Number),
    one("numpy.nancumprod", &[], Reduces::Running),
    one("numpy.nancumsum", &[], Reduces::Running),
    one("numpy.nanmax", &[], Reduces::Number),
    one("numpy.nanmean", &[], Reduces::Number),
    one("numpy.nanmedian", &[], Reduces::Number),
    one("numpy.nanmin", &[], Reduces::Number),
    one("numpy.nanpercentile", &[], Reduces::Number),
    one("numpy.nanprod", &[], Reduces::Number),
    one("numpy.nanquantile", &[], Reduces::Number),
    one("numpy.nanstd", &[], Reduces::Number),
    one("numpy.nansum", &[], Reduces::Number),
    one("numpy.nanvar", &[], Reduces::Number),
    one("numpy.percentile", &[], Reduces::Number),
    one("numpy.ptp", &[], Reduces::Number),
    one("numpy.quantile", &[], Reduces::Number),
];

impl Reduction {
    fn attribute(&self) -> &'static str {
        self.name.strip_prefix("numpy.").unwrap_or(self.name)
    }

    fn found(&self, py: Python<'_>) -> PyResult<&Found> {
        self.found.get_or_try_init(py, || {
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
            Ok(Found {
                parameters: parameters.collect::<PyResult<_>>()?,
                short: short.map(Bound::unbind),
                function: function.unbind(),
            })
        })
    }

    /// Computes; NotImplemented if another array is to decide what happens.
    pub(super) fn call<'py>(
        &self,
        py: Python<'py>,
        asked: &Asked<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = self.found(py)?;
        let function = found.function.bind(py);
        let short = found.short.as_ref().map(|short| short.bind(py));
        let reducer = Reducer {
            name: self.name,
            function,
            short,
            known_as: (short.unwrap_or(function), Way::Call),
            kind: self.kind,
        };
        Ok(reducer.run(py, asked)?.unwrap_or_else(|| py.NotImplemented().into_bound(py)))
    }

    /// As [`Reduction::call`], with arguments for NumPy's function.
    pub(super) fn call_with<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let mut asked = Asked::default();
        asked.put_all(&self.found(py)?.parameters, args, keywords, self.name)?;
        self.call(py, &asked)
    }
}

/// Computes for a method of storages; `name` is that of NumPy's function, with the module.
pub(super) fn method<'py>(
    py: Python<'py>,
    name: &str,
    asked: &Asked<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    match REDUCTIONS.iter().find(|one| one.name == name) {
        Some(reduction) => reduction.call(py, asked),
        None => Ok(py.NotImplemented().into_bound(py)),
    }
}

/// The functions of the NumPy that is installed, with their numbers.
fn functions(py: Python<'_>) -> PyResult<&Bound<'_, PyDict>> {
    static FUNCTIONS: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let found = FUNCTIONS.get_or_try_init(py, || {
        let numpy = py.import(intern!(py, "numpy"))?;
        let functions = PyDict::new(py);
        for (number, one) in REDUCTIONS.iter().enumerate() {
            if let Some(function) = numpy.getattr_opt(one.attribute())? {
                functions.set_item(function, number)?;
            }
        }
        PyResult::Ok(functions.unbind())
    })?;
    Ok(found.bind(py))
}

/// The reduction that a function of NumPy's is.
pub(super) fn reduction_of(function: &Bound<'_, PyAny>) -> PyResult<Option<&'static Reduction>> {
    let number = functions(function.py())?.get_item(function)?;
    let number: Option<usize> = number.map(|number| number.extract()).transpose()?;
    Ok(number.and_then(|number| REDUCTIONS.get(number)))
}

/// Give the functions of NumPy that `reduced` computes.
#[pyfunction]
pub(crate) fn reducing_functions(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    Ok(functions(py)?.keys())
}

/// Reduce by one of `reducing_functions()`, which takes the other arguments.
///
/// The result has the dims that stay, with their halo, origin and order in memory. Gives
/// NotImplemented if an array is to decide what happens.
#[pyfunction]
#[pyo3(signature = (function, /, *args, **keywords))]
pub(crate) fn reduced<'py>(
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(reduction) = reduction_of(function)? else {
        return Err(PyTypeError::new_err(format!(
            "function: expected one of reducing_functions(), got {function}; use to_numpy() of the \
             storages"
        )));
    };
    reduction.call_with(args, keywords)
}

/// Calls a method of a universal function, with what NumPy hands to `__array_ufunc__`.
///
/// # Errors
/// Those of NumPy, and of names, orders and extents that do not go together.
pub(super) fn by_method<'py>(
    ufunc: &Bound<'py, PyAny>,
    method: &Bound<'py, PyString>,
    inputs: &Bound<'py, PyTuple>,
    options: Option<&Bound<'py, PyDict>>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = ufunc.py();
    let text = method.to_cow()?;
    let way = match &*text {
        "reduce" => Way::Reduce,
        "accumulate" => Way::Accumulate,
        _ => {
            let others = py.import(intern!(py, "dlfield.functions.ufuncs"))?;
            let compute = others.getattr(intern!(py, "METHODS"))?.get_item(method)?;
            let options = options.cloned().unwrap_or_else(|| PyDict::new(py));
            return compute.call1((ufunc, inputs, options)).map(Some);
        }
    };
    let mut asked = Asked { axis: Some(0_usize.into_pyobject(py)?.into_any()), ..Asked::default() };
    let first = inputs.iter().next();
    first.map(|array| asked.put("a", &array)).transpose()?;
    for (name, value) in options.into_iter().flatten() {
        asked.put(&name.cast::<PyString>()?.to_cow()?, &value)?;
    }
    asked.unwrap_out()?;
    let function = ufunc.getattr(method)?;
    let reducer = Reducer {
        name: &format!("{name}.{text}"),
        function: &function,
        short: Some(&function),
        known_as: (ufunc, way),
        kind: if way == Way::Accumulate { Reduces::Running } else { Reduces::Number },
    };
    reducer.run(py, &asked)
}

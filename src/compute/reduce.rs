//! One call of a function that reduces dimensions, `k...->...`, or accumulates along one,
//! `k...->k...`, by NumPy or by CuPy.

use std::slice::from_ref;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyTuple};
use smallvec::SmallVec;

use super::arguments::{Arguments, Reduces, by_position};
use super::cupy::Cupy;
use super::lift::Lift;
use super::operands::{Operand, moved};
use super::others::Others;
use super::place::{Place, behind_points, spread};
use super::types::{Kind, Signature, Types, result_type, result_types};
use crate::device::Target;
use crate::dtype::DType;
use crate::error::Error;
use crate::field::{Dims, Joined, Operand as Labels, Reduced, show_dims};
use crate::interpreter::Inside;
use crate::managed::Managed;
use crate::protocol::is_plain_ndarray;
use crate::python::numpy::dtype_to;
use crate::short_ways::short_ways;
use crate::storage::Storage;

/// A function that reduces.
pub(super) struct Reduction<'a, 'py> {
    /// Its name in messages, with that of the module.
    pub(super) name: &'a str,
    /// Called with the array by position, and all other arguments by name.
    pub(super) function: &'a Bound<'py, PyAny>,
    /// A function with the same result, called with array, axis, dtype and out by position; a
    /// function that returns indices takes no dtype.
    pub(super) short: Option<&'a Bound<'py, PyAny>>,
    /// The universal function whose method it is.
    pub(super) ufunc: Option<&'a Bound<'py, PyAny>>,
    pub(super) signature: Signature,
}

/// The arguments of NumPy's function.
struct Values<'py> {
    array: Bound<'py, PyAny>,
    axis: Bound<'py, PyAny>,
    mask: Option<Bound<'py, PyAny>>,
    options: Option<Bound<'py, PyDict>>,
}

impl<'py> Reduction<'_, 'py> {
    /// Computes. Nothing is written if it is refused.
    pub(super) fn run(
        &self,
        py: Python<'py>,
        arguments: &Arguments<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _inside = Inside::enter(py);
        let Some(array) = &arguments.array else { return Err(self.no_array()) };
        let (inputs, out) = (from_ref(array), from_ref(&arguments.out));
        let (mask, others) = (arguments.mask.as_ref(), Others::AreRead);
        let lift = Lift::read(self.name, inputs, mask, out, others)?;
        let Some(lift) = lift else { return Err(self.no_array()) };
        let Some(array) = lift.operands.first() else { return Err(self.no_array()) };
        let labels = array.labels().unwrap_or(Labels { shape: &[], field: None });
        let reduces = self.axes(py, arguments, labels)?;
        let options = self.options(arguments, labels, &reduces.axes)?;
        let several = has_several_points(options.as_ref())?;
        if lift.target != Target::Host {
            self.check_options(lift.mask().is_some(), several, options.as_ref())?;
        }
        let axes: &[usize] =
            if self.signature == Signature::Accumulated { &[] } else { &reduces.axes };
        let reduced = Reduced::new(labels.shape.len(), axes, arguments.keepdims);
        let (output, place) = match lift.outputs.first().and_then(Option::as_ref) {
            Some(output) if several => {
                (Some(output.clone()), behind_points(self.name, output, labels, &reduced)?)
            }
            Some(output) => (Some(output.clone()), spread(py, &lift, labels, &reduced)?),
            None if several => (None, None),
            None => (self.new_output(py, arguments, options.as_ref(), &lift, &reduced)?, None),
        };
        match (lift.target.ordinal(), output) {
            (None, output) => {
                let mask = lift.mask().map(|mask| self.aligned(py, mask, labels)).transpose()?;
                let (array, axis) = (array.array(py, self.name)?, reduces.value);
                let values = Values { array, axis, mask, options };
                self.on_host(py, arguments, &lift, &values, output, place)
            }
            (Some(ordinal), Some(output)) => {
                let keywords = Self::keywords(arguments, &reduces.value, options.as_ref())?;
                self.on_gpu(py, ordinal, &lift, &keywords, &output, place)?;
                Ok(output.object())
            }
            (Some(_), None) => Err(self.no_array()),
        }
    }

    /// A storage for the result; `None` for a number of NumPy, and for what is no storage. On a GPU a
    /// number is a storage without dims.
    fn new_output(
        &self,
        py: Python<'py>,
        arguments: &Arguments<'py>,
        options: Option<&Bound<'py, PyDict>>,
        lift: &Lift<'_, 'py>,
        reduced: &Reduced,
    ) -> PyResult<Option<Operand<'py>>> {
        let Some((memory, field)) = lift.operands.first().and_then(Operand::storage) else {
            return Ok(None);
        };
        if lift.target == Target::Host && reduced.is_number() {
            return Ok(None);
        }
        let dtype = self.dtype(py, arguments, options, memory)?;
        let made = Storage::for_reduction(memory, field, reduced, dtype, lift.residence)?;
        Operand::new(py, made).map(Some)
    }

    /// Lets NumPy reduce: into the output, or into an array that is copied along what the output has
    /// more.
    fn on_host(
        &self,
        py: Python<'py>,
        arguments: &Arguments<'py>,
        lift: &Lift<'_, 'py>,
        values: &Values<'py>,
        output: Option<Operand<'py>>,
        place: Option<Place>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(output) = output else { return self.call(py, arguments, values, None) };
        let out = output.array(py, self.name)?;
        let is_new = lift.outputs.first().is_none_or(Option::is_none);
        let is_half = output.storage().is_some_and(|(memory, _)| memory.dtype() == DType::Float16);
        let outcome = match place {
            // NumPy adds numbers of float16 up in float32 only if it makes the result itself, and
            // writes the maximum of `ptp` before it looks for the minimum.
            None if (is_new && is_half) || self.name == "numpy.ptp" => {
                self.call(py, arguments, values, None).and_then(|made| {
                    let numpy = py.import(intern!(py, "numpy"))?;
                    numpy.call_method1(intern!(py, "copyto"), (&out, made)).map(drop)
                })
            }
            None => self.call(py, arguments, values, Some(&out)).map(drop),
            Some(Place::Turned(axes)) => {
                let turned = moved(out, axes.len(), &axes)?;
                self.call(py, arguments, values, Some(&turned)).map(drop)
            }
            Some(Place::Spread(shape, axes)) => {
                let numpy = py.import(intern!(py, "numpy"))?;
                let like = (PyTuple::new(py, &shape)?, out.getattr(intern!(py, "dtype"))?);
                let part = numpy.call_method1(intern!(py, "empty"), like)?;
                self.call(py, arguments, values, Some(&part)).and_then(|_| {
                    let part = moved(part, shape.len(), &axes)?;
                    numpy.call_method1(intern!(py, "copyto"), (&out, part)).map(drop)
                })
            }
        };
        lift.written(py, from_ref(&output), outcome)?;
        Ok(output.object())
    }

    /// Lets CuPy reduce, and copies the result into the output.
    fn on_gpu(
        &self,
        py: Python<'py>,
        ordinal: i32,
        lift: &Lift<'_, 'py>,
        keywords: &Bound<'py, PyDict>,
        output: &Operand<'py>,
        place: Option<Place>,
    ) -> PyResult<()> {
        Cupy::work(py, ordinal, self.name, |cupy| {
            let path = self.name.strip_prefix("numpy.").unwrap_or(self.name);
            let function = cupy.attribute(path, self.ufunc, self.name)?;
            let mut array = |operand: Option<&Operand<'py>>| {
                let memory = operand.map(|one| cupy.memory(py, one, self.name)).transpose()?;
                cupy.array(py, &memory.flatten().ok_or_else(|| self.no_array())?)
            };
            let (values, out) = (array(lift.operands.first())?, array(Some(output))?);
            let result = function.call((values,), Some(keywords));
            let result = result.and_then(|result| match &place {
                Some(Place::Spread(shape, axes)) => moved(result, shape.len(), axes),
                Some(Place::Turned(_)) | None => Ok(result), // of points, which CuPy does not get
            });
            let outcome = result.and_then(|result| cupy.copy_to(&out, &result, None, None));
            lift.written(py, from_ref(output), outcome)
        })
    }

    /// Lets NumPy compute. With `out` the result is there.
    fn call(
        &self,
        py: Python<'py>,
        arguments: &Arguments<'py>,
        values: &Values<'py>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (dtype, Values { array, axis, mask, options }) = (&arguments.dtype, values);
        let is_short = short_ways() && arguments.is_plain() && is_plain_ndarray(array);
        if let Some(short) = self.short.filter(|_| is_short) {
            return match self.signature {
                Signature::ReducedToIndex => short.call1((array, axis, out)),
                Signature::ReducedToTruth => {
                    short.call1((array, axis, py.get_type::<PyBool>(), out))
                }
                _ => short.call1((array, axis, dtype, out)),
            };
        }
        let keywords = Self::keywords(arguments, axis, options.as_ref())?;
        out.map(|out| keywords.set_item(intern!(py, "out"), out)).transpose()?;
        mask.as_ref().map(|mask| keywords.set_item(intern!(py, "where"), mask)).transpose()?;
        self.function.call((array,), Some(&keywords))
    }

    fn keywords(
        arguments: &Arguments<'py>,
        axis: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let py = axis.py();
        let keywords = options.map_or_else(|| Ok(PyDict::new(py)), |options| options.copy())?;
        keywords.set_item(intern!(py, "axis"), axis)?;
        if let Some(dtype) = &arguments.dtype {
            keywords.set_item(intern!(py, "dtype"), dtype)?;
        }
        if arguments.keepdims {
            keywords.set_item(intern!(py, "keepdims"), true)?;
        }
        Ok(keywords)
    }

    fn no_array(&self) -> PyErr {
        let name = self.name;
        PyTypeError::new_err(format!("{name}: expected an array, got none; pass it first"))
    }

    fn axes(
        &self,
        py: Python<'py>,
        arguments: &Arguments<'py>,
        array: Labels<'_>,
    ) -> PyResult<Reduces<'py>> {
        let ndim = array.shape.len();
        let needs_axis = self.signature == Signature::Accumulated && ndim != 1;
        if needs_axis && (arguments.axis.is_none() || ndim == 0) {
            return Err(PyTypeError::new_err(format!(
                "{}: needs an axis of a storage of {ndim} dimensions; use ravel() to go through all \
                 elements",
                self.name
            )));
        }
        let dims = array.field.and_then(|field| field.dims.as_ref());
        Reduces::read(py, arguments.axis.as_ref(), ndim, dims, self.name)
    }

    /// A mask with its axes in the order of the array.
    fn aligned(
        &self,
        py: Python<'py>,
        mask: &Operand<'py>,
        array: Labels<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(labels) = mask.labels() else { return mask.value(py, &[], self.name) };
        if let Some(axes) = Joined::new(&[array])?.axes_of(labels) {
            return mask.value(py, &axes, self.name);
        }
        let joined = Joined::new(&[array, labels])?;
        let own = (0..array.shape.len()).map(Some);
        let stays = joined.axes.first().is_some_and(|axes| axes.iter().copied().eq(own));
        match joined.axes.get(1) {
            Some(axes) if stays && joined.shape.as_slice() == array.shape => {
                mask.value(py, axes, self.name)
            }
            _ => Err(self.other_mask(labels, array).into()),
        }
    }

    fn other_mask(&self, mask: Labels<'_>, array: Labels<'_>) -> Error {
        let named = |labels: Labels<'_>| labels.field?.dims.as_deref().map(show_dims);
        Error::Argument(match (named(mask), named(array)) {
            (Some(own), Some(dims)) => format!(
                "{}: expected a mask with dims among {dims}, got {own}; rename them",
                self.name
            ),
            _ => format!(
                "{}: expected a mask that can be broadcast to shape {:?}, got shape {:?}; pass a \
                 mask of a part of these dimensions",
                self.name, array.shape, mask.shape
            ),
        })
    }

    fn options(
        &self,
        arguments: &Arguments<'py>,
        array: Labels<'_>,
        axes: &[usize],
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(options) = &arguments.options else { return Ok(None) };
        let dims = array.field.and_then(|field| field.dims.as_ref());
        let reduced: Option<Dims> =
            dims.and_then(|dims| axes.iter().map(|axis| dims.get(*axis).cloned()).collect());
        let plain = PyDict::new(options.py());
        for (name, value) in options {
            let name = name.to_string();
            let reduced = reduced.as_ref().filter(|_| name == "weights");
            let value = by_position(&name, &value, [dims, reduced], self.name)?;
            plain.set_item(name, value)?;
        }
        Ok(Some(plain))
    }

    /// Refuses what CuPy's reductions do not take.
    fn check_options(
        &self,
        masked: bool,
        several: bool,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        let has = |name: &str| options.is_some_and(|one| one.contains(name).unwrap_or(false));
        let got = match () {
            () if masked => "where",
            () if has("initial") => "initial",
            () if several => "several points",
            () => return Ok(()),
        };
        Err(PyTypeError::new_err(format!(
            "{}: expected axis, dtype, out and keepdims alone for memory on a GPU, where CuPy \
             computes, got {got}; use a copy on the host, dlfield.storage(field, device='cpu')",
            self.name
        )))
    }

    /// The type of the result, by NumPy's rules: that of a call with a single element. Quantiles that
    /// leave out NaN are NaN of no elements.
    fn dtype(
        &self,
        py: Python<'py>,
        arguments: &Arguments<'py>,
        options: Option<&Bound<'py, PyDict>>,
        of: &Managed,
    ) -> PyResult<DType> {
        let function = self.ufunc.or(self.short).unwrap_or(self.function);
        let decides = |options: &Bound<'py, PyDict>| options.len() > 0;
        let is_quantile = self.name.starts_with("numpy.nan")
            && options.is_some_and(|one| one.contains("q").unwrap_or(false));
        let is_inexact = of.dtype().is_complex() || of.dtype().name().contains("float");
        let is_nan = is_quantile && of.layout().size() == 0 && !is_inexact;
        let dtype = if is_nan { DType::Float64 } else { of.dtype() };
        let follows = arguments.dtype.is_none() && !options.is_some_and(decides);
        let kinds = follows.then(|| SmallVec::from_elem(Kind::Items(dtype), 1));
        let types = result_types(function, self.signature, kinds, || {
            let numpy = py.import(intern!(py, "numpy"))?;
            let single = Values {
                array: numpy.call_method1(intern!(py, "ones"), ((1, 1), dtype_to(py, dtype)?))?,
                axis: 0_usize.into_pyobject(py)?.into_any(),
                mask: None,
                options: options.map(of_types).transpose()?,
            };
            let arguments = Arguments { dtype: arguments.dtype.clone(), ..Arguments::default() };
            let answer = self.call(py, &arguments, &single, None)?;
            Ok(Types::from_elem(result_type(&answer, self.name)?, 1))
        })?;
        types.first().copied().ok_or_else(|| self.no_array())
    }
}

/// The options that decide on the type of a result.
fn of_types<'py>(options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let kept = options.copy()?;
    for name in ["ddof", "correction", "mean", "initial", "weights"] {
        if kept.contains(name)? {
            kept.del_item(name)?;
        }
    }
    Ok(kept)
}

/// True for quantiles at several points, along which the result has dimensions without names.
fn has_several_points(options: Option<&Bound<'_, PyDict>>) -> PyResult<bool> {
    let points = options.map(|options| options.get_item("q")).transpose()?.flatten();
    let Some(points) = points else { return Ok(false) };
    if points.is_instance_of::<PyFloat>() || points.is_instance_of::<PyInt>() {
        return Ok(false);
    }
    let py = points.py();
    let ndim: usize =
        py.import(intern!(py, "numpy"))?.call_method1("ndim", (points,))?.extract()?;
    Ok(ndim > 0)
}

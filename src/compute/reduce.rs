//! One call of a function of NumPy that reduces dimensions, or accumulates along one.
//!
//! ```text
//! Asked ──▶ array, mask, output ──labels, memory──▶ function(array, axis, dtype, out)
//! ```

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt};
use smallvec::SmallVec;

use super::asked::{Along, Asked, by_position};
use super::given::{Given, array_of};
use super::known::{Key, Kind, Known, Way, result_type};
use super::outputs::Output;
use super::place::Place;
use super::site::Site;
use super::work::explained;
use crate::device::Target;
use crate::dtype::DType;
use crate::error::Error;
use crate::field::{Axes, Joined, Operand, Reduced, show_dims};
use crate::python::numpy::dtype_to;
use crate::python::storage::PyStorage;
use crate::storage::Storage;
use crate::sync::Dirty;

/// A function that reduces.
pub(super) struct Reducer<'a, 'py> {
    /// Its name in messages, with that of the module.
    pub(super) name: &'a str,
    /// Called with the array by position, and all other arguments by name.
    pub(super) function: &'a Bound<'py, PyAny>,
    /// A function with the same result, called with array, axis, dtype and out by position; a
    /// function that gives indices takes no dtype.
    pub(super) short: Option<&'a Bound<'py, PyAny>>,
    /// The function and the way by which the type of its results is known.
    pub(super) known_as: (&'a Bound<'py, PyAny>, Way),
    pub(super) kind: Reduces,
}

/// The kind of result that a function has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reduces {
    Number,
    Truth,
    Index,
    /// A number for each of them: the dimension stays.
    Running,
}

/// The array, and the mask if there is one.
pub(super) type AllGiven<'py> = SmallVec<[Given<'py>; 2]>;

/// The arguments of NumPy's function.
struct Values<'py> {
    array: Bound<'py, PyAny>,
    axis: Bound<'py, PyAny>,
    mask: Option<Bound<'py, PyAny>>,
    options: Option<Bound<'py, PyDict>>,
}

impl<'py> Reducer<'_, 'py> {
    /// Lets NumPy reduce.
    pub(super) fn on_host(
        &self,
        py: Python<'py>,
        asked: &Asked<'py>,
        site: Site,
        given: AllGiven<'py>,
        output: Option<Output<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut given = given.into_iter().map(|one| one.on_host(py, self.name));
        let Some(array) = given.next().transpose()? else { return Err(self.no_array()) };
        let mask = given.next().transpose()?;
        if let Some(output) = &output {
            output.memory_at(py, Target::Host, self.name)?; // brought up to date
        }
        let operand = array.operand().unwrap_or(Operand { shape: &[], field: None });
        let ndim = operand.shape.len();
        let along = self.along(py, asked, operand)?;
        let values = Values {
            array: self.array(py, &array, ndim)?,
            axis: along.value,
            mask: mask.map(|mask| self.aligned(py, &mask, operand)).transpose()?,
            options: self.options(asked, operand)?,
        };
        let reduced: &[usize] = if self.kind == Reduces::Running { &[] } else { &along.axes };
        let reduced = Reduced::new(ndim, reduced, asked.keepdims);
        let several = has_several_points(values.options.as_ref())?;
        match (output, &array) {
            (Some(output), _) => {
                let operand = Some(operand).filter(|_| !several);
                self.write_into(py, asked, &values, output, operand, &reduced)
            }
            (None, Given::Storage(storage, field)) if !several && !reduced.is_number() => {
                let (options, memory) =
                    (values.options.as_ref(), storage.get().storage().managed());
                let dtype = self.dtype(py, asked, options, memory.dtype())?;
                let made = Storage::for_reduction(memory, field, &reduced, dtype, site.residence)?;
                let made = PyStorage::wrap(py, made, None)?.into_bound(py);
                let out = array_of(&made, self.name, false)?;
                self.call(py, asked, &values, Some(&out))?;
                made.get().storage().set_dirty(Dirty::Host);
                Ok(made.into_any())
            }
            _ => self.call(py, asked, &values, None),
        }
    }

    /// The array to read. It may be written if the storage may: NumPy copies it for `argmax` if not.
    fn array(
        &self,
        py: Python<'py>,
        array: &Given<'py>,
        ndim: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        match array {
            Given::Storage(storage, _) => {
                array_of(storage, self.name, storage.get().storage().managed().readonly())
            }
            _ => array.value(py, &(0..ndim).map(Some).collect::<Axes>(), self.name),
        }
    }

    pub(super) fn no_array(&self) -> PyErr {
        let name = self.name;
        PyTypeError::new_err(format!("{name}: expected an array, got none; pass it first"))
    }

    pub(super) fn along(
        &self,
        py: Python<'py>,
        asked: &Asked<'py>,
        operand: Operand<'_>,
    ) -> PyResult<Along<'py>> {
        let ndim = operand.shape.len();
        let needs_axis = self.kind == Reduces::Running && ndim != 1;
        if needs_axis && (asked.axis.is_none() || ndim == 0) {
            return Err(PyTypeError::new_err(format!(
                "{}: expected an axis of a storage of {ndim} dimensions, got none; use ravel() to \
                 go through all elements",
                self.name
            )));
        }
        let dims = operand.field.and_then(|field| field.dims.as_ref());
        Along::read(py, asked.axis.as_ref(), ndim, dims, self.name)
    }

    /// A mask with its axes in the order of the array.
    fn aligned(
        &self,
        py: Python<'py>,
        mask: &Given<'py>,
        array: Operand<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(operand) = mask.operand() else { return mask.value(py, &[], self.name) };
        let joined = Joined::new(&[array, operand])?;
        let own = (0..array.shape.len()).map(Some);
        let stays = joined.axes.first().is_some_and(|axes| axes.iter().copied().eq(own));
        match joined.axes.get(1) {
            Some(axes) if stays && joined.shape.as_slice() == array.shape => {
                mask.value(py, axes, self.name)
            }
            _ => Err(self.other_mask(operand, array).into()),
        }
    }

    fn other_mask(&self, mask: Operand<'_>, array: Operand<'_>) -> Error {
        let named = |operand: Operand<'_>| operand.field?.dims.as_deref().map(show_dims);
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

    pub(super) fn options(
        &self,
        asked: &Asked<'py>,
        operand: Operand<'_>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(options) = &asked.options else { return Ok(None) };
        let dims = operand.field.and_then(|field| field.dims.as_ref());
        let plain = PyDict::new(options.py());
        for (name, value) in options {
            let value = by_position(&name.to_string(), &value, dims, self.name)?;
            plain.set_item(name, value)?;
        }
        Ok(Some(plain))
    }

    /// The type of the result, by NumPy's rules: that of a call with a single element.
    pub(super) fn dtype(
        &self,
        py: Python<'py>,
        asked: &Asked<'py>,
        options: Option<&Bound<'py, PyDict>>,
        of: DType,
    ) -> PyResult<DType> {
        let (function, way) = self.known_as;
        let decides = |options: &Bound<'py, PyDict>| options.len() > 0;
        let is_known = asked.dtype.is_none() && !options.is_some_and(decides);
        let key = || Key::new(function, way, SmallVec::from_elem(Kind::Items(of), 1));
        if let Some(known) = is_known.then(key).as_ref().and_then(Known::get)
            && let Some(dtype) = known.first()
        {
            return Ok(*dtype);
        }
        let one = py
            .import(intern!(py, "numpy"))?
            .call_method1(intern!(py, "ones"), (1, dtype_to(py, of)?))?;
        let single = Values {
            array: one,
            axis: 0_usize.into_pyobject(py)?.into_any(),
            mask: None,
            options: options.map(of_types).transpose()?,
        };
        let asked = Asked { dtype: asked.dtype.clone(), ..Asked::default() };
        let dtype = result_type(&self.call(py, &asked, &single, None)?, self.name)?;
        if is_known {
            Known::put(key(), SmallVec::from_elem(dtype, 1), function);
        }
        Ok(dtype)
    }

    /// Computes into an output of the caller's, and repeats the result along what it has more.
    fn write_into(
        &self,
        py: Python<'py>,
        asked: &Asked<'py>,
        values: &Values<'py>,
        output: Output<'py>,
        operand: Option<Operand<'_>>,
        reduced: &Reduced,
    ) -> PyResult<Bound<'py, PyAny>> {
        let outputs = [Some(output)];
        let [Some(output)] = &outputs else { return Err(self.no_array()) };
        let place = match operand {
            Some(operand) => Place::of(operand, reduced, &outputs)?,
            None => Place::default(),
        };
        if place.is_empty(output) {
            return Ok(output.object());
        }
        let out = place.first(py, output, self.name)?;
        let outcome = self.call(py, asked, values, Some(&out)).and_then(|_| place.repeat(output));
        output.mark(py, Dirty::Host); // perhaps half written, if NumPy has raised
        outcome.map_err(|error| explained(py, error, true))?;
        Ok(output.object())
    }

    /// Lets NumPy compute. With `out` the result is there.
    fn call(
        &self,
        py: Python<'py>,
        asked: &Asked<'py>,
        values: &Values<'py>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (dtype, Values { array, axis, mask, options }) = (&asked.dtype, values);
        if let Some(short) = self.short.filter(|_| asked.is_plain()) {
            return match self.kind {
                Reduces::Index => short.call1((array, axis, out)),
                Reduces::Truth => short.call1((array, axis, py.get_type::<PyBool>(), out)),
                _ => short.call1((array, axis, dtype, out)),
            };
        }
        let keywords = options.as_ref().map_or_else(|| Ok(PyDict::new(py)), |one| one.copy())?;
        keywords.set_item(intern!(py, "axis"), axis)?;
        let optional = [
            (intern!(py, "dtype"), dtype.as_ref()),
            (intern!(py, "out"), out),
            (intern!(py, "where"), mask.as_ref()),
        ];
        for (name, value) in optional {
            value.map(|value| keywords.set_item(name, value)).transpose()?;
        }
        if asked.keepdims {
            keywords.set_item(intern!(py, "keepdims"), true)?;
        }
        self.function.call((array,), Some(&keywords))
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
pub(super) fn has_several_points(options: Option<&Bound<'_, PyDict>>) -> PyResult<bool> {
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

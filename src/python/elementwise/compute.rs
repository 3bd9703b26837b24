//! One call of a function of NumPy that works element by element.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};
use smallvec::SmallVec;

use super::given::{Given, Kind};
use super::known::{Key, Known, Types, Way, result_type};
use super::outputs::{Output, join};
use crate::dtype::DType;
use crate::error::Error;
use crate::field::{Axes, Field, Joined, Operand};
use crate::layout::Extents;
use crate::managed::Managed;
use crate::protocol::ending::Inside;
use crate::python::numpy::array_over;
use crate::python::storage::PyStorage;
use crate::storage::Storage;

/// A call to make: `function(inputs..., outputs..., where=..., options...)`.
pub(super) struct Call<'a, 'py> {
    pub(super) function: &'a Bound<'py, PyAny>,
    /// Its name in messages.
    pub(super) name: &'a str,
    pub(super) inputs: &'a [Bound<'py, PyAny>],
    /// As many as the function has results; `None` for a new storage.
    pub(super) out: &'a [Option<Bound<'py, PyAny>>],
    pub(super) mask: Option<Bound<'py, PyAny>>,
    /// Other keywords for NumPy.
    pub(super) options: Option<Bound<'py, PyDict>>,
}

impl<'py> Call<'_, 'py> {
    /// Computes; `None` if another operand is to decide what happens. Nothing is written if it is
    /// refused.
    pub(super) fn run(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let _inside = Inside::enter(py);
        let mut given: SmallVec<[Given<'py>; 4]> = SmallVec::new();
        for object in self.inputs.iter().chain(&self.mask) {
            let Some(one) = Given::read(object, self.name)? else { return Ok(None) };
            given.push(one);
        }
        let mut outputs: SmallVec<[Option<Output<'py>>; 2]> = SmallVec::new();
        for object in self.out {
            let read = |object| Output::read(object, self.name);
            match object.as_ref().map(read).transpose()? {
                Some(None) => return Ok(None),
                output => outputs.push(output.flatten()),
            }
        }
        let alike = alike(&given, &outputs).filter(|_| self.mask.is_none());
        let alike = alike.map(|(memory, field)| (memory.clone(), field.clone()));
        let joined = match &alike {
            Some((memory, _)) => Joined::alike(memory.layout().shape(), given.len()),
            None => join(&given, &outputs)?,
        };
        let made = match &alike {
            Some((memory, field)) => self.made_like(py, memory, field, &given, &outputs)?,
            None => None,
        };
        let made = match made {
            Some(made) => made,
            None => {
                let joined = if alike.is_some() { &join(&given, &outputs)? } else { &joined };
                self.made(py, joined, &given, &outputs)?
            }
        };
        self.compute(py, &joined, &given, &outputs, &made)?;
        let results = outputs.iter().zip(made).map(|(output, made)| match (output, made) {
            (Some(output), _) => Ok(output.object()),
            (None, Some(made)) => Ok(PyStorage::wrap(py, made, None)?.into_bound(py).into_any()),
            (None, None) => Ok(py.None().into_bound(py)),
        });
        let mut results = results.collect::<PyResult<SmallVec<[_; 2]>>>()?;
        match results.len() {
            1 => Ok(results.pop()),
            _ => Ok(Some(PyTuple::new(py, results)?.into_any())),
        }
    }

    /// As `made`, for operands that all have this shape and field; `None` if it takes more.
    fn made_like(
        &self,
        py: Python<'py>,
        memory: &Managed,
        field: &Arc<Field>,
        given: &[Given<'py>],
        outputs: &[Option<Output<'py>>],
    ) -> PyResult<Option<Made>> {
        if outputs.iter().all(Option::is_some) {
            return Ok(Some(outputs.iter().map(|_| None).collect()));
        }
        let mut made = Made::new();
        for (output, dtype) in outputs.iter().zip(self.dtypes(py, given)?) {
            let one = match output {
                Some(_) => None,
                None => match Storage::for_result_like(memory, field, dtype)? {
                    None => return Ok(None),
                    one => one,
                },
            };
            made.push(one);
        }
        Ok(Some(made))
    }

    /// New storages where the caller gives no output.
    fn made(
        &self,
        py: Python<'py>,
        joined: &Joined,
        given: &[Given<'py>],
        outputs: &[Option<Output<'py>>],
    ) -> PyResult<Made> {
        if outputs.iter().all(Option::is_some) {
            return Ok(outputs.iter().map(|_| None).collect());
        }
        let inputs = given.get(..self.inputs.len()).unwrap_or_default();
        let dtypes = self.dtypes(py, inputs)?;
        let ranks: SmallVec<[Option<Extents>; 4]> =
            given.iter().filter(has_shape).map(Given::ranks).collect();
        let no_labels = self.mask.as_ref().and_then(|_| given.last()?.operand());
        let bare = no_labels.and_then(|mask| mask.field).map(Self::names_alone);
        let mut operands: SmallVec<[Operand<'_>; 4]> =
            given.iter().filter_map(Given::operand).collect();
        if let (Some(mask), Some(field)) =
            (operands.last_mut().filter(|_| no_labels.is_some()), &bare)
        {
            mask.field = Some(field);
        }
        let one = |(output, dtype): (&Option<Output<'_>>, &DType)| match output {
            Some(_) => Ok(None),
            None => Ok(Some(Storage::for_result(joined, &operands, &ranks, *dtype)?)),
        };
        outputs.iter().zip(&dtypes).map(one).collect()
    }

    /// A mask decides on no label but the names.
    fn names_alone(field: &Field) -> Field {
        let halo =
            field.dims.as_ref().map(|dims| std::iter::repeat_n((0, 0), dims.len()).collect());
        Field { dims: field.dims.clone(), halo, ..Field::default() }
    }

    /// The types of the results, by NumPy's rules: those of a call without elements.
    fn dtypes(&self, py: Python<'py>, inputs: &[Given<'py>]) -> PyResult<Types> {
        let kinds: Option<SmallVec<[Kind; 2]>> = inputs.iter().map(Given::kind).collect();
        let key = kinds.filter(|_| self.options.is_none());
        let key = key.map(|kinds| Key::new(self.function, Way::Call, kinds));
        if let Some(known) = key.as_ref().and_then(Known::get) {
            return Ok(known);
        }
        let stand_ins = inputs.iter().map(|one| one.stand_in(py)).collect::<PyResult<Vec<_>>>()?;
        let answer = self.function.call(PyTuple::new(py, stand_ins)?, self.options.as_ref())?;
        let dtype = |one| result_type(&one, self.name);
        let dtypes: Types = match answer.cast::<PyTuple>() {
            Ok(several) => several.iter().map(dtype).collect::<PyResult<_>>()?,
            Err(_) => Types::from_slice(&[dtype(answer)?]),
        };
        if let Some(key) = key {
            Known::put(key, dtypes.clone(), self.function);
        }
        Ok(dtypes)
    }

    /// Lets NumPy compute into the outputs.
    fn compute(
        &self,
        py: Python<'py>,
        joined: &Joined,
        given: &[Given<'py>],
        outputs: &[Option<Output<'py>>],
        made: &[Option<Storage>],
    ) -> PyResult<()> {
        let none = Axes::new();
        let mut axes = joined.axes.iter();
        let mut values: SmallVec<[Bound<'py, PyAny>; 4]> = SmallVec::new();
        for one in given {
            let axes = if has_shape(&one) { axes.next() } else { None };
            values.push(one.value(py, axes.unwrap_or(&none))?);
        }
        let mask = self.mask.as_ref().and_then(|_| values.pop());
        for (output, made) in outputs.iter().zip(made) {
            match (output, made) {
                (Some(output), _) => values.push(output.value(py)?),
                (None, Some(made)) => values.push(array_over(py, made.managed(), false)?),
                (None, None) => {}
            }
        }
        let outcome = match (values.as_slice(), mask, &self.options) {
            // An out by position is deprecated of these two, since NumPy 2.4.
            ([a, b, out], None, None) if matches!(self.name, "numpy.maximum" | "numpy.minimum") => {
                let options = [(intern!(py, "out"), out)].into_py_dict(py)?;
                self.function.call((a, b), Some(&options))
            }
            ([a, out], None, None) => self.function.call1((a, out)),
            ([a, b, out], None, None) => self.function.call1((a, b, out)),
            (values, mask, options) => {
                let options =
                    options.as_ref().map_or_else(|| Ok(PyDict::new(py)), |one| one.copy())?;
                mask.map(|mask| options.set_item(intern!(py, "where"), mask)).transpose()?;
                self.function.call(PyTuple::new(py, values)?, Some(&options))
            }
        };
        for output in outputs.iter().flatten() {
            output.mark(py); // perhaps half written, if NumPy has raised
        }
        outcome
            .map(|_| ())
            .map_err(|error| explained(py, error, outputs.iter().any(Option::is_some)))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "for filters")]
fn has_shape(given: &&Given<'_>) -> bool {
    given.operand().is_some()
}

/// NumPy refuses types before it writes; whatever else fails may have written some elements.
pub(super) fn explained(py: Python<'_>, error: PyErr, written: bool) -> PyErr {
    if written && !error.is_instance_of::<PyTypeError>(py) {
        let note = "out: some elements may have been written before the error";
        drop(error.value(py).call_method1(intern!(py, "add_note"), (note,)));
    }
    error
}

/// New storages for the results; `None` where the caller gives an output.
type Made = SmallVec<[Option<Storage>; 2]>;

/// The first storage, if all operands and outputs are numbers, and storages with its shape and field.
fn alike<'a>(
    given: &'a [Given<'_>],
    outputs: &[Option<Output<'_>>],
) -> Option<(&'a Managed, &'a Arc<Field>)> {
    let mut first: Option<(&Managed, &Arc<Field>)> = None;
    let is_same = |(memory, field): (&Managed, &Arc<Field>), other: &Managed, its: &Arc<Field>| {
        let fields = Arc::ptr_eq(field, its) || field == its;
        fields && memory.layout().shape() == other.layout().shape()
    };
    for one in given {
        match (one, first) {
            (Given::Number(_), _) => {}
            (Given::Storage(memory, field), None) => first = Some((memory, field)),
            (Given::Storage(memory, field), Some(known)) if is_same(known, memory, field) => {}
            _ => return None,
        }
    }
    let known = first?;
    let fits = |output: &Output<'_>| match output {
        Output::Storage(storage, memory) => {
            is_same(known, memory, &storage.get().storage().field())
        }
        Output::Array(_) => false,
    };
    outputs.iter().flatten().all(fits).then_some(known)
}

/// The error of a function that does not work element by element.
pub(super) fn not_elementwise(name: &str) -> Error {
    Error::Type(format!(
        "{name}: expected a function that works element by element, got one of matrices, whose \
         dimensions have no names; use to_numpy() of the storages"
    ))
}

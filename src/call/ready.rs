//! A call that is ready to come again: all that `run` gets but arrays and scalars, and for each
//! array how it is found from its argument.
//!
//! NumPy arrays, storages and DataArrays are compared with what is known of them, and not imported.
//! Tensors of torch are imported at each call: only torch knows whether their memory holds their
//! values, and whether it records a gradient.

use std::sync::Arc;

use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;

use super::declared::{Declared, OFFSET_PROVIDER};
use super::hooks::first_of;
use super::incoming::{Incoming, named};
use super::planned::PlannedField;
use super::run::Run;
use super::runner::Runner;
use super::values::Values;
use crate::device::Target;
use crate::error::Failure;
use crate::field::Field;
use crate::protocol::buffer::ArrayForm;
use crate::protocol::{Request, array_and_dims, import, is_plain_tensor, note_written};
use crate::python::numpy::array_over;
use crate::python::storage::PyStorage;
use crate::stencil::{ArgumentPrint, Fingerprint, Place, are_all_apart};

/// All that the next call needs but its arrays and scalars.
pub(super) struct Ready {
    /// One for each field of the stencil; `None` for an unused one that is missing.
    arrays: Vec<Option<ReadyArray>>,
    has_tensors: bool,
    /// Positions among the arguments of the tensors that are written.
    written: Vec<usize>,
    /// Every keyword of `run`, without the arguments that a call gives.
    keywords: Py<PyDict>,
    origins: Py<PyDict>,
}

struct ReadyArray {
    /// The form of the array that `run` gets.
    form: ArrayForm,
    argument: ReadyArgument,
}

/// The argument that the array comes from.
enum ReadyArgument {
    /// The array itself.
    Array,
    Storage(ReadyStorage),
    /// A DataArray that holds the array, with these names of its axes.
    DataArray(Py<PyTuple>),
    /// A tensor of exactly torch's class, with its axes in the declared order.
    Tensor(Box<[usize]>),
}

struct ReadyStorage {
    labels: Arc<Field>,
    /// Its axes in the declared order.
    axes: Box<[usize]>,
}

/// An array that `run` gets, and its address.
type Found<'py> = (Bound<'py, PyAny>, usize);
/// One for each field of the stencil.
type AllFound<'py> = SmallVec<[Option<Found<'py>>; 16]>;

/// A call that can be made.
pub(super) struct ReadyCall<'a, 'py> {
    ready: &'a Ready,
    keywords: Bound<'py, PyDict>,
}

impl Ready {
    /// `None` for a call that has to be planned each time.
    pub(super) fn new(run: &Run<'_, '_>) -> PyResult<Option<Self>> {
        let (call, py) = (run.call, run.keywords.py());
        let on_host = call.declared.spec.target == Target::Host;
        if !on_host || call.warns || !call.fields.have_no_hooks() || !call.runs() {
            return Ok(None);
        }
        let (mut arrays, mut written) = (Vec::new(), Vec::new());
        for field in call.fields() {
            let ready = match (field.given, field.unused) {
                (None, None) => None,
                (Some((incoming, _)), _) => match ReadyArray::new(run, field, incoming)? {
                    Some(ready) => Some(ready),
                    None => return Ok(None),
                },
                (None, Some(_)) => return Ok(None),
            };
            let is_written = field.spec.access.writes() && !call.values.options.functional;
            if is_written && ready.as_ref().is_some_and(ReadyArray::is_tensor) {
                written.push(field.name_at);
            }
            arrays.push(ready);
        }
        let keywords = run.keywords.copy()?;
        let scalars = call.declared.scalars.iter().map(|&(at, _)| at);
        let fields = call.fields().filter(|field| field.given.is_some());
        for at in scalars.chain(fields.map(|field| field.name_at)) {
            keywords.set_item(call.declared.name(py, at), py.None())?;
        }
        let origins = run.keywords.get_item(intern!(py, "_origin_"))?;
        let Some(Ok(origins)) = origins.map(Bound::cast_into::<PyDict>) else { return Ok(None) };
        keywords.set_item(intern!(py, "_origin_"), py.None())?;
        let (keywords, origins) = (keywords.unbind(), origins.copy()?.unbind());
        let has_tensors = arrays.iter().flatten().any(ReadyArray::is_tensor);
        Ok(Some(Self { arrays, has_tensors, written, keywords, origins }))
    }

    /// The call, if each argument has its fingerprint and no output overlaps another argument.
    ///
    /// # Errors
    /// An interrupt. Every other error is left to a call that is planned, which meets the first one.
    pub(super) fn call<'py>(
        &self,
        py: Python<'py>,
        fingerprint: &Fingerprint,
        declared: &Declared,
        values: &Values<'py>,
    ) -> PyResult<Option<ReadyCall<'_, 'py>>> {
        let mut found = AllFound::new();
        found.resize(self.arrays.len(), None);
        // An import may let other threads run, or code of the user's: what is only compared comes
        // after all of them.
        let imports: &[bool] = if self.has_tensors { &[true, false] } else { &[false] };
        for &tensors in imports {
            if !self.find(&mut found, tensors, fingerprint, declared, values)? {
                return Ok(None);
            }
        }
        let mut places = SmallVec::<[_; 16]>::new();
        places.extend(self.arrays.iter().zip(&found).map(place));
        if !are_all_apart(&declared.spec, places.iter().copied()) {
            return Ok(None);
        }
        let keywords = self.keywords(py, declared, values, &found)?;
        Ok(Some(ReadyCall { ready: self, keywords }))
    }

    /// Finds the arrays of all tensors, or of all other arguments. False if one of them is another
    /// argument than it was.
    fn find<'py>(
        &self,
        found: &mut AllFound<'py>,
        tensors: bool,
        fingerprint: &Fingerprint,
        declared: &Declared,
        values: &Values<'py>,
    ) -> PyResult<bool> {
        let fields = self.arrays.iter().zip(fingerprint.arguments()).zip(&declared.fields_at);
        for (((ready, print), &at), found) in fields.zip(found) {
            let value = values.named.get(at).and_then(Option::as_ref);
            match (ready.as_ref().zip(print), value.filter(|value| !value.is_none())) {
                (None, None) => {}
                (Some((ready, _)), Some(_)) if ready.is_tensor() != tensors => {}
                (Some((ready, print)), Some(value)) => {
                    let name = || declared.name(value.py(), at).map(ToString::to_string);
                    *found = ready.array(print, value).map_err(|failure| {
                        named(value.py(), &name().unwrap_or_default(), failure)
                    })?;
                    if found.is_none() {
                        return Ok(false);
                    }
                }
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    fn keywords<'py>(
        &self,
        py: Python<'py>,
        declared: &Declared,
        values: &Values<'py>,
        found: &AllFound<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let keywords = self.keywords.bind(py).copy()?;
        for ((at, _), value) in declared.scalars.iter().zip(&values.scalars) {
            keywords.set_item(declared.name(py, *at), value)?;
        }
        for (&at, found) in declared.fields_at.iter().zip(found) {
            if let Some((array, _)) = found {
                keywords.set_item(declared.name(py, at), array)?;
            }
        }
        if let Some(connectivities) = &values.connectivities {
            keywords.set_item(intern!(py, OFFSET_PROVIDER), connectivities)?;
        }
        keywords.set_item(intern!(py, "_origin_"), self.origins.bind(py).copy()?)?;
        Ok(keywords)
    }
}

/// Layout and address of an array that was found.
fn place<'a>((ready, found): (&'a Option<ReadyArray>, &Option<Found<'_>>)) -> Option<Place<'a>> {
    Some((ready.as_ref()?.form.layout(), found.as_ref()?.1))
}

impl<'py> ReadyCall<'_, 'py> {
    /// Runs the stencil, and tells torch of the tensors that were written, even if it raised.
    pub(super) fn run(
        &self,
        runner: &Runner,
        values: &Values<'py>,
        exec_info: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let py = self.keywords.py();
        let outcome = runner.run(py, &self.keywords, exec_info);
        let written = self.ready.written.iter().filter_map(|&at| values.named.get(at)?.as_ref());
        written.fold(outcome, |outcome, tensor| first_of(py, outcome, note_written(tensor)))
    }
}

impl ReadyArray {
    /// `None` for an argument that may be another one each time.
    fn new(
        run: &Run<'_, '_>,
        field: PlannedField<'_>,
        incoming: &Incoming,
    ) -> PyResult<Option<Self>> {
        let (call, py, managed) = (run.call, run.keywords.py(), &incoming.argument.managed);
        let Some(Some(value)) = call.values.named.get(field.name_at) else { return Ok(None) };
        if call.is_readonly(incoming) != managed.readonly() {
            return Ok(None); // it claims to be writable for one call
        }
        let axes = field.given.map(|(_, plan)| plan.axes.as_slice()).unwrap_or_default();
        // Beside tensors `run` got a view of the user's own array. The next call gets the array itself,
        // which is compared when everything has been imported.
        let own = incoming.array.as_ref().filter(|_| axes.is_sorted());
        let array = match own {
            Some(own) => Some(own.bind(py).clone()),
            None => run.keywords.get_item(call.declared.name(py, field.name_at))?,
        };
        let Some(array) = array else { return Ok(None) };
        let object = value.cast::<PyStorage>().ok().map(|storage| storage.get());
        let argument = match object {
            Some(object) if object.storage().plain_host().is_some() => {
                let labels = object.storage().field();
                ReadyArgument::Storage(ReadyStorage { labels, axes: axes.into() })
            }
            _ if array.is(value) => ReadyArgument::Array,
            _ if is_plain_tensor(value) => ReadyArgument::Tensor(axes.into()),
            _ => match array_and_dims(value)? {
                Some((held, dims)) if array.is(&held) => ReadyArgument::DataArray(dims.unbind()),
                _ => return Ok(None),
            },
        };
        let layout = managed.layout().permute(axes)?;
        let Some(form) = ArrayForm::new(&array, &layout) else { return Ok(None) };
        if let Some(object) = object {
            object.keep_array(&array);
        }
        Ok(Some(Self { form, argument }))
    }

    fn is_tensor(&self) -> bool {
        matches!(self.argument, ReadyArgument::Tensor(_))
    }

    /// The array that `run` gets for a value, and its address; `None` for another argument than it
    /// was.
    ///
    /// # Errors
    /// As [`Ready::call`].
    fn array<'py>(
        &self,
        print: &ArgumentPrint,
        value: &Bound<'py, PyAny>,
    ) -> Result<Option<Found<'py>>, Failure> {
        let found = match &self.argument {
            ReadyArgument::Array => self.of_array(value),
            ReadyArgument::Storage(storage) => storage.array(&self.form, value),
            ReadyArgument::DataArray(known) => self.of_data_array(known, value),
            ReadyArgument::Tensor(axes) => match of_tensor(axes, print, value) {
                Err(Failure::Theirs(error)) if !error.is_instance_of::<PyException>(value.py()) => {
                    return Err(error.into());
                }
                found => found.ok().flatten(),
            },
        };
        Ok(found.filter(|&(_, address)| print.may_lie_at(address)))
    }

    fn of_array<'py>(&self, value: &Bound<'py, PyAny>) -> Option<Found<'py>> {
        Some((value.clone(), self.form.address_of(value)?))
    }

    fn of_data_array<'py>(
        &self,
        known: &Py<PyTuple>,
        value: &Bound<'py, PyAny>,
    ) -> Option<Found<'py>> {
        let (array, dims) = array_and_dims(value).ok()??;
        let address = self.form.address_of(&array)?;
        are_the_names(&dims, known).then_some((array, address))
    }
}

/// True for the same names. Only texts are compared: other objects could run code of their own.
fn are_the_names(dims: &Bound<'_, PyTuple>, known: &Py<PyTuple>) -> bool {
    let are_texts = || dims.iter_borrowed().all(|dim| dim.is_exact_instance_of::<PyString>());
    dims.is(known) || (are_texts() && dims.eq(known).unwrap_or(false))
}

/// A new array over the memory of a tensor with this print.
fn of_tensor<'py>(
    axes: &[usize],
    print: &ArgumentPrint,
    value: &Bound<'py, PyAny>,
) -> Result<Option<Found<'py>>, Failure> {
    if !is_plain_tensor(value) {
        return Ok(None);
    }
    let mut memory = import(value, Request::computation(Target::Host))?.memory;
    if !print.is_of(&memory) {
        return Ok(None);
    }
    if !axes.is_sorted() {
        memory = memory.permute(axes)?;
    }
    let array = array_over(value.py(), &memory, memory.readonly())?;
    Ok(Some((array, memory.position())))
}

impl ReadyStorage {
    /// The array of this form over the memory of a storage with these labels, and its address. A
    /// storage that has kept none keeps the one that is made here.
    fn array<'py>(&self, form: &ArrayForm, value: &Bound<'py, PyAny>) -> Option<Found<'py>> {
        let object = value.cast::<PyStorage>().ok()?.get();
        let (host, field) = (object.storage().plain_host()?, object.storage().field());
        if !Arc::ptr_eq(&field, &self.labels) && !field.has_labels_of(&self.labels) {
            return None;
        }
        let kept = object.kept_array(value.py());
        let array = match &kept {
            Some(array) => array.clone(),
            None => {
                let managed = host.permute(&self.axes).ok()?;
                array_over(value.py(), &managed, managed.readonly()).ok()?
            }
        };
        let address = form.address_of(&array).filter(|&address| address == host.position())?;
        if kept.is_none() {
            object.keep_array(&array);
        }
        Some((array, address))
    }
}

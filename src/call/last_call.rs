//! The last call of a bound stencil, for one that comes again. Everything that its plan depends on is
//! its fingerprint and the basis of its footprint: a call that has the same gets the same plan.
//!
//! A call that has come twice with NumPy arrays, storages or DataArrays is made ready: the next one is
//! compared before anything is imported, and gets the keywords of `run`.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;

use super::declared::{Declared, OFFSET_PROVIDER};
use super::footprint::{Basis, CallFootprints};
use super::incoming::{Incoming, IncomingFields};
use super::planned::PlannedField;
use super::run::Run;
use super::values::Values;
use crate::device::Target;
use crate::field::Field;
use crate::protocol::array_and_dims;
use crate::protocol::buffer::ArrayForm;
use crate::python::numpy::array_over;
use crate::python::storage::PyStorage;
use crate::short_ways::short_ways;
use crate::stencil::{ArgumentPrint, CallPlan, Fingerprint, Place, are_all_apart, resolve};

/// The last call that was not copied.
#[derive(Default)]
pub(super) struct LastCall(Mutex<Option<Arc<Call>>>);

#[derive(Clone)]
pub(super) struct Call {
    fingerprint: Arc<Fingerprint>,
    basis: Basis,
    plan: Arc<CallPlan>,
    ready: Option<Arc<Ready>>,
}

/// All that the next call needs but its arrays and scalars.
struct Ready {
    /// One for each field of the stencil; `None` for an unused one that is missing.
    arrays: Vec<Option<ReadyArray>>,
    /// Every keyword of `run`, without the arrays and the scalars.
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
}

struct ReadyStorage {
    labels: Arc<Field>,
    /// Its axes in the declared order.
    axes: Box<[usize]>,
}

impl LastCall {
    fn get(&self) -> Option<Arc<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, call: Call) {
        if !short_ways() {
            return;
        }
        let call = Some(Arc::new(call));
        let before =
            std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), call);
        drop(before); // not under the lock: it may hold objects of Python's
    }

    /// The keywords of `run` for a call that differs from the last one in nothing but where its
    /// arrays lie. Nothing is imported.
    pub(super) fn keywords<'py>(
        &self,
        py: Python<'py>,
        declared: &Declared,
        values: &Values<'py>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(last) = self.get().filter(|last| last.fingerprint.has(&values.options)) else {
            return Ok(None);
        };
        let Some(ready) = &last.ready else { return Ok(None) };
        if !last.basis.holds(py, values)? {
            return Ok(None);
        }
        let Some(arrays) = ready.arrays(&last.fingerprint, declared, values) else {
            return Ok(None);
        };
        ready.with(py, declared, values, &arrays).map(Some)
    }

    /// The plan of a call. The last call beside it, if its plan is the one.
    ///
    /// # Errors
    /// As [`resolve`].
    pub(super) fn plan(
        &self,
        py: Python<'_>,
        declared: &Declared,
        values: &Values<'_>,
        fields: &IncomingFields,
    ) -> PyResult<(Arc<CallPlan>, Option<Arc<Call>>)> {
        let (spec, options) = (&declared.spec, &values.options);
        let fits = |last: &Arc<Call>| last.fingerprint.fits(spec, fields.arguments(), options);
        if let Some(last) = self.get().filter(fits)
            && last.basis.holds(py, values)?
        {
            return Ok((Arc::clone(&last.plan), Some(last)));
        }
        let footprints = CallFootprints { declared, values, py };
        let (plan, basis) = resolve(spec, fields.arguments(), options, &footprints)?;
        let plan = Arc::new(plan);
        if plan.first_copy().is_none() {
            let fingerprint = Arc::new(Fingerprint::new(spec, fields.arguments(), options));
            self.set(Call { fingerprint, basis, plan: Arc::clone(&plan), ready: None });
        }
        Ok((plan, None))
    }

    /// Makes a call ready that has come twice, if its arguments are such that it may come again.
    pub(super) fn prepare(&self, last: &Call, run: &Run<'_, '_>) -> PyResult<()> {
        if let Some(ready) = Ready::new(run)? {
            self.set(Call { ready: Some(Arc::new(ready)), ..last.clone() });
        }
        Ok(())
    }
}

impl Ready {
    fn new(run: &Run<'_, '_>) -> PyResult<Option<Self>> {
        let (call, py) = (run.call, run.keywords.py());
        let on_host = call.declared.spec.target == Target::Host;
        if !on_host || !call.undisturbed || !call.runs() {
            return Ok(None);
        }
        let mut arrays = Vec::new();
        for field in call.fields() {
            match (field.given, field.unused) {
                (None, None) => arrays.push(None),
                (Some((incoming, _)), _) => match ReadyArray::new(run, field, incoming)? {
                    Some(ready) => arrays.push(Some(ready)),
                    None => return Ok(None),
                },
                (None, Some(_)) => return Ok(None),
            }
        }
        let keywords = run.keywords.copy()?;
        for name in &call.declared.names {
            keywords.set_item(name, py.None())?;
        }
        let origins = run.keywords.get_item(intern!(py, "_origin_"))?;
        let Some(Ok(origins)) = origins.map(Bound::cast_into::<PyDict>) else { return Ok(None) };
        keywords.set_item(intern!(py, "_origin_"), py.None())?;
        keywords.set_item(intern!(py, "exec_info"), py.None())?;
        let (keywords, origins) = (keywords.unbind(), origins.copy()?.unbind());
        Ok(Some(Self { arrays, keywords, origins }))
    }

    /// The arrays of a call, if each has the fingerprint and no output overlaps another argument.
    fn arrays<'py>(
        &self,
        fingerprint: &Fingerprint,
        declared: &Declared,
        values: &Values<'py>,
    ) -> Option<SmallVec<[Option<Bound<'py, PyAny>>; 16]>> {
        let mut places: SmallVec<[Option<Place<'_>>; 16]> = SmallVec::new();
        let mut arrays = SmallVec::new();
        let fields = self.arrays.iter().zip(fingerprint.arguments()).zip(&declared.fields_at);
        for ((ready, print), &at) in fields {
            let value = values.named.get(at)?.as_ref().filter(|value| !value.is_none());
            match (ready.as_ref().zip(print), value) {
                (None, None) => {
                    places.push(None);
                    arrays.push(None);
                }
                (Some((ready, print)), Some(value)) => {
                    let (array, address) = ready.array(print, value)?;
                    places.push(Some((ready.form.layout(), address)));
                    arrays.push(Some(array));
                }
                _ => return None,
            }
        }
        are_all_apart(&declared.spec, places.iter().copied()).then_some(arrays)
    }

    fn with<'py>(
        &self,
        py: Python<'py>,
        declared: &Declared,
        values: &Values<'py>,
        arrays: &[Option<Bound<'py, PyAny>>],
    ) -> PyResult<Bound<'py, PyDict>> {
        let keywords = self.keywords.bind(py).copy()?;
        for ((at, _), value) in declared.scalars.iter().zip(&values.scalars) {
            keywords.set_item(declared.name(py, *at), value)?;
        }
        for (&at, array) in declared.fields_at.iter().zip(arrays) {
            keywords.set_item(declared.name(py, at), array)?;
        }
        if let Some(connectivities) = &values.connectivities {
            keywords.set_item(intern!(py, OFFSET_PROVIDER), connectivities)?;
        }
        keywords.set_item(intern!(py, "_origin_"), self.origins.bind(py).copy()?)?;
        Ok(keywords)
    }
}

impl ReadyArray {
    /// `None` for an argument that has to be imported each time.
    fn new(
        run: &Run<'_, '_>,
        field: PlannedField<'_>,
        incoming: &Incoming,
    ) -> PyResult<Option<Self>> {
        let (call, py, managed) = (run.call, run.keywords.py(), &incoming.argument.managed);
        let name = call.declared.name(py, field.name_at);
        let (Some(array), Some(Some(value))) =
            (run.keywords.get_item(name)?, call.values.named.get(field.name_at))
        else {
            return Ok(None);
        };
        if call.is_readonly(incoming) != managed.readonly() {
            return Ok(None); // it claims to be writable for one call
        }
        let axes = field.given.map(|(_, plan)| plan.axes.as_slice()).unwrap_or_default();
        let object = value.cast::<PyStorage>().ok().map(|storage| storage.get());
        let argument = match object {
            Some(object) if object.storage().plain_host().is_some() => {
                let labels = object.storage().field();
                ReadyArgument::Storage(ReadyStorage { labels, axes: axes.into() })
            }
            _ if array.is(value) => ReadyArgument::Array,
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

    /// The array that `run` gets for a value, and its address.
    fn array<'py>(
        &self,
        print: &ArgumentPrint,
        value: &Bound<'py, PyAny>,
    ) -> Option<(Bound<'py, PyAny>, usize)> {
        let (array, address) = match &self.argument {
            ReadyArgument::Array => (value.clone(), self.form.address_of(value)?),
            ReadyArgument::Storage(storage) => storage.array(&self.form, value)?,
            ReadyArgument::DataArray(known) => {
                let (array, dims) = array_and_dims(value).ok()??;
                let address = self.form.address_of(&array)?;
                are_the_names(&dims, known).then_some((array, address))?
            }
        };
        print.may_lie_at(address).then_some((array, address))
    }
}

/// True for the same names. Only texts are compared: other objects could run code of their own.
fn are_the_names(dims: &Bound<'_, PyTuple>, known: &Py<PyTuple>) -> bool {
    let are_texts = || dims.iter_borrowed().all(|dim| dim.is_exact_instance_of::<PyString>());
    dims.is(known) || (are_texts() && dims.eq(known).unwrap_or(false))
}

impl ReadyStorage {
    /// The array of this form over the memory of a storage with these labels, and its address. A
    /// storage that has kept none keeps the one that is made here.
    fn array<'py>(
        &self,
        form: &ArrayForm,
        value: &Bound<'py, PyAny>,
    ) -> Option<(Bound<'py, PyAny>, usize)> {
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

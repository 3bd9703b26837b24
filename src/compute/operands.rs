//! The operands and outputs of a function: what NumPy or CuPy computes with, and their labels.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySlice, PyTuple};
use smallvec::SmallVec;

use super::others::{Others, has_the_last_word, is_masked, is_of_library, numpys_class};
use super::types::Kind;
use crate::device::Target;
use crate::error::{Error, Failure};
use crate::field::{Field, Halo, Operand as Labels};
use crate::layout::Extents;
use crate::managed::Managed;
use crate::protocol::buffer::shape_and_dtype;
use crate::protocol::read::class_name;
use crate::protocol::{self, Arrival, Request, is_plain_ndarray};
use crate::python::numpy::{array_held_by, array_over, dtype_to, import_or_convert, is_number};
use crate::python::storage::PyStorage;
use crate::storage::{Residence, Storage};

/// An operand. An output is a storage or an array.
#[derive(Clone)]
pub(super) enum Operand<'py> {
    /// A number, or what NumPy takes for one.
    Number(Bound<'py, PyAny>),
    /// An array of exactly NumPy's class.
    Array(Bound<'py, PyAny>, Extents),
    Storage(Bound<'py, PyStorage>, Arc<Field>),
    Foreign(Box<Foreign<'py>>),
}

/// Memory of another library.
#[derive(Clone)]
pub(super) struct Foreign<'py> {
    object: Bound<'py, PyAny>,
    memory: Managed,
    /// Its names, if it has any.
    field: Option<Field>,
}

impl<'py> Operand<'py> {
    /// Reads an object; `None` if it is to decide what happens. Of other objects with memory on both
    /// sides that on a GPU counts if a storage `beside_gpu` has a buffer there.
    pub(super) fn read(
        object: &Bound<'py, PyAny>,
        what: &str,
        others: Others,
        beside_gpu: impl FnOnce() -> bool,
    ) -> PyResult<Option<Self>> {
        let py = object.py();
        if let Ok(storage) = object.cast::<PyStorage>() {
            return Self::of(storage, what).map(Some);
        }
        if is_number(object) {
            return Ok(Some(Self::Number(object.clone())));
        }
        if is_plain_ndarray(object) {
            return Self::of_array(object.clone()).map(Some);
        }
        let is_one = object.is_none() || object.is_instance_of::<PyBytes>();
        if is_one || object.is_instance(numpys_class(py, "generic")?)? {
            return Ok(Some(Self::Number(object.clone())));
        }
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            return Self::of_array(asarray(object)?).map(Some);
        }
        let decides = has_the_last_word(object)?;
        if decides && others == Others::Decide {
            return Ok(None);
        }
        if is_of_library(object, "polars")? {
            return Self::of_numpys(object).map(Some); // whose columns may lack values, and be of bits
        }
        let request = Request::shared(beside_gpu().then_some(Target::Gpu(None)));
        match import_or_convert(object, request, None) {
            Err(Failure::Ours(Error::Type(text))) if !decides => {
                Self::converted(object, text).map(Some)
            }
            arrival => Self::foreign(object, arrival?).map(Some),
        }
    }

    /// Reads an output; `None` if its class is to decide what happens.
    pub(super) fn read_output(
        object: &Bound<'py, PyAny>,
        what: &str,
        others: Others,
    ) -> PyResult<Option<Self>> {
        if let Ok(storage) = object.cast::<PyStorage>() {
            let output = Self::of(storage, what)?;
            storage.get().storage().check_assignable().map_err(|error| error.about(what))?;
            return Ok(Some(output));
        }
        if is_plain_ndarray(object) {
            return Ok(Some(Self::Array(object.clone(), shape_of(object)?)));
        }
        let (py, decides) = (object.py(), has_the_last_word(object)?);
        if decides && others == Others::Decide {
            return Ok(None);
        }
        let is_array = object.is_instance(numpys_class(py, "ndarray")?)?;
        if is_array && !decides && !is_masked(object)? {
            return Ok(Some(Self::Array(object.clone(), shape_of(object)?))); // such as a memmap
        }
        Err(PyTypeError::new_err(format!(
            "{what}: expected a storage or a NumPy array as out, got a {}; pass \
             dlfield.as_storage(array)",
            class_name(&object.get_type())
        )))
    }

    /// A new storage.
    pub(super) fn new(py: Python<'py>, made: Storage) -> PyResult<Self> {
        let field = made.field();
        Ok(Self::Storage(PyStorage::wrap(py, made, None)?.into_bound(py), field))
    }

    fn of(storage: &Bound<'py, PyStorage>, what: &str) -> PyResult<Self> {
        let object = storage.get();
        if object.storage().residence() == Residence::Host {
            object.host(storage.py(), what)?;
        }
        Ok(Self::Storage(storage.clone(), object.storage().field()))
    }

    fn of_array(array: Bound<'py, PyAny>) -> PyResult<Self> {
        let shape = shape_of(&array)?;
        Ok(if shape.is_empty() { Self::Number(array) } else { Self::Array(array, shape) })
    }

    fn of_numpys(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        match Self::of_array(asarray(object)?)? {
            Self::Number(_) => Ok(Self::Number(object.clone())),
            array => Ok(array),
        }
    }

    /// Reads an object without memory as NumPy does: as an array or an element.
    fn converted(object: &Bound<'py, PyAny>, text: String) -> PyResult<Self> {
        match protocol::dims(object)? {
            None => Self::of_numpys(object),
            Some(_) => Err(Error::Type(text).into()), // NumPy would lose the names
        }
    }

    /// An array of another library.
    fn foreign(object: &Bound<'py, PyAny>, arrival: Arrival) -> PyResult<Self> {
        let halo = || Some(Halo::from_elem((0, 0), arrival.memory.layout().ndim()));
        let named = |dims| Field { dims: Some(dims), halo: halo(), ..Field::default() };
        let field = arrival.dims().cloned().map(named);
        let memory = arrival.acquired(object.py())?;
        Ok(Self::Foreign(Box::new(Foreign { object: object.clone(), memory, field })))
    }

    /// Shape and labels; `None` for a number.
    pub(super) fn labels(&self) -> Option<Labels<'_>> {
        let (memory, field) = match self {
            Self::Number(_) => return None,
            Self::Array(_, shape) => return Some(Labels { shape, field: None }),
            Self::Storage(storage, field) => (storage.get().storage().managed(), Some(&**field)),
            Self::Foreign(one) => (&one.memory, one.field.as_ref()),
        };
        Some(Labels { shape: memory.layout().shape(), field })
    }

    /// Layout and field of a storage.
    pub(super) fn storage(&self) -> Option<(&Managed, &Arc<Field>)> {
        match self {
            Self::Storage(storage, field) => Some((storage.get().storage().managed(), field)),
            _ => None,
        }
    }

    /// The ranks of a storage.
    pub(super) fn ranks(&self) -> Option<Extents> {
        let (memory, field) = self.storage()?;
        Some(memory.layout().ranks(field.order.as_deref().unwrap_or_default()))
    }

    /// The type, if the result's follows from it whatever the values are.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self {
            Self::Number(object) | Self::Array(object, _) => Kind::of(object),
            _ => self.storage().map(|(memory, _)| Kind::Items(memory.dtype())),
        }
    }

    /// The buffers of a storage.
    pub(super) fn residence(&self) -> Option<Residence> {
        match self {
            Self::Storage(storage, _) => Some(storage.get().storage().residence()),
            _ => None,
        }
    }

    /// True unless a GPU may have something to do with it.
    pub(super) fn is_of_host(&self) -> bool {
        match self {
            Self::Number(_) | Self::Array(..) => true,
            Self::Storage(storage, _) => storage.get().storage().residence() == Residence::Host,
            Self::Foreign(one) => one.memory.device().is_host(),
        }
    }

    /// True for an array whose newest values are on a GPU.
    pub(super) fn is_on_gpu(&self) -> bool {
        match self {
            Self::Number(_) | Self::Array(..) => false,
            Self::Storage(storage, _) => storage.get().storage().is_device_newest(),
            Self::Foreign(one) => Residence::for_memory_on(one.memory.device()) != Residence::Host,
        }
    }

    /// True if a GPU can have the values without a copy by the user.
    pub(super) fn is_for_gpu(&self) -> bool {
        match self {
            Self::Number(_) => true,
            Self::Storage(..) => !self.is_of_host(),
            Self::Array(..) | Self::Foreign(_) => self.is_on_gpu(),
        }
    }

    /// Refuses an array that cannot be had at `target` without a copy by the user.
    pub(super) fn check_at(&self, target: Target, what: &str) -> PyResult<()> {
        let reaches = |memory: &Managed| target.reaches(memory.device());
        let (there, got) = match self {
            Self::Number(_) => return Ok(()),
            Self::Array(..) => (target == Target::Host, "an array of NumPy".to_owned()),
            Self::Foreign(one) => {
                (reaches(&one.memory), format!("memory on {}", one.memory.device()))
            }
            Self::Storage(storage, _) => {
                let object = storage.get().storage();
                let (class, ordinal) = (storage.get_type().name()?, object.residence().ordinal());
                let number = ordinal.map_or_else(String::new, |one| format!(" on GPU {one}"));
                let there = match target {
                    Target::Host => object.host_as_is().is_some(),
                    Target::Gpu(_) => object.device_as_is().is_some_and(reaches),
                };
                (there, format!("a {class}{number}"))
            }
        };
        if there {
            return Ok(());
        }
        let device = match target {
            Target::Gpu(Some(number)) => format!("('gpu', {number})"),
            Target::Gpu(None) => "'gpu'".into(),
            Target::Host => "'cpu'".into(),
        };
        Err(Error::Buffer(format!(
            "{what}: expected arrays on {target}, where it computes, got {got}; copy it with \
             dlfield.storage(array, device={device})"
        ))
        .into())
    }

    /// The array of NumPy, or the number, to read, with its axes in the order of a result.
    pub(super) fn value(
        &self,
        py: Python<'py>,
        axes: &[Option<usize>],
        what: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (array, ndim) = match self {
            Self::Number(number) => return Ok(number.clone()),
            Self::Array(array, shape) => (array.clone(), shape.len()),
            Self::Foreign(one) => (array_over(py, &one.memory, true)?, one.memory.layout().ndim()),
            Self::Storage(storage, _) => {
                let memory = storage.get().host(py, what)?;
                let ndim = memory.layout().ndim();
                if is_in_order(ndim, axes) {
                    return array_of(storage, what, true);
                }
                // SAFETY: a view of the storage's own buffer, as in `array_of`.
                return unsafe { array_held_by(storage.as_any(), &memory.align(axes)?, true) };
            }
        };
        moved(array, ndim, axes)
    }

    /// The same as it lies, writable if the storage is: NumPy copies what `argmax` reads if not.
    pub(super) fn array(&self, py: Python<'py>, what: &str) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Number(array) | Self::Array(array, _) => Ok(array.clone()),
            Self::Foreign(one) => array_over(py, &one.memory, true),
            Self::Storage(storage, _) => {
                array_of(storage, what, storage.get().storage().managed().readonly())
            }
        }
    }

    /// The memory at a target where there is some, up to date once the work in its timeline is done;
    /// `None` for numbers and arrays of NumPy.
    pub(super) fn memory_at(
        &self,
        py: Python<'py>,
        target: Target,
        what: &str,
    ) -> PyResult<Option<&Managed>> {
        match self {
            Self::Number(_) | Self::Array(..) => Ok(None),
            Self::Foreign(one) => Ok(Some(&one.memory)),
            Self::Storage(storage, _) if target == Target::Host => {
                storage.get().host(py, what).map(Some)
            }
            Self::Storage(storage, _) => storage.get().device(py, what).map(Some),
        }
    }

    /// A stand-in without elements, from which NumPy tells the type of a result.
    pub(super) fn stand_in(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let dtype = match self {
            Self::Number(number) => return Ok(number.clone()),
            Self::Array(array, ..) => array.getattr(intern!(py, "dtype"))?,
            Self::Foreign(one) => dtype_to(py, one.memory.dtype())?,
            Self::Storage(storage, _) => dtype_to(py, storage.get().storage().dtype())?,
        };
        py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "empty"), (0, dtype))
    }

    /// The object itself.
    pub(super) fn object(&self) -> Bound<'py, PyAny> {
        match self {
            Self::Number(object) | Self::Array(object, _) => object.clone(),
            Self::Storage(storage, _) => storage.clone().into_any(),
            Self::Foreign(one) => one.object.clone(),
        }
    }

    /// True if both are one storage.
    pub(super) fn is(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Storage(own, _), Self::Storage(other, _)) if own.is(other))
    }
}

/// An array over the buffer of a storage on the host, up to date, which the storage keeps.
///
/// # Errors
/// GTNoSuchBufferError that names `what` needs the buffer, if there is none.
fn array_of<'py>(
    storage: &Bound<'py, PyStorage>,
    what: &str,
    readonly: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let memory = storage.get().host(storage.py(), what)?;
    // SAFETY: the storage's own buffer on the host: it never changes, and lives as long as the
    // storage (`Storage::buffers`).
    unsafe { array_held_by(storage.as_any(), memory, readonly) }
}

fn asarray<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let numpy = object.py().import(intern!(object.py(), "numpy"))?;
    numpy.call_method1(intern!(object.py(), "asarray"), (object,))
}

fn shape_of(array: &Bound<'_, PyAny>) -> PyResult<Extents> {
    match shape_and_dtype(array) {
        Some((shape, _)) => Ok(shape),
        None => Ok(array.getattr(intern!(array.py(), "shape"))?.extract::<Vec<i64>>()?.into()),
    }
}

/// An array of NumPy or CuPy with its axes in the order of a result: `axes` as in [`crate::field::Joined`].
pub(super) fn moved<'py>(
    array: Bound<'py, PyAny>,
    ndim: usize,
    axes: &[Option<usize>],
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    if is_in_order(ndim, axes) {
        return Ok(array); // NumPy adds dimensions in front itself
    }
    let all = PySlice::full(py).into_any();
    let first = |axis: usize| match axes.contains(&Some(axis)) {
        true => Ok(all.clone()),
        false => Ok(0_usize.into_pyobject(py)?.into_any()), // of extent 1
    };
    let key = (0..ndim).map(first).collect::<PyResult<Vec<_>>>()?;
    let named: SmallVec<[usize; 6]> = axes.iter().copied().flatten().collect();
    let place = |axis: &usize| named.iter().filter(|other| *other < axis).count();
    let order: Vec<usize> = named.iter().map(place).collect();
    let new =
        |axis: &Option<usize>| if axis.is_some() { all.clone() } else { py.None().into_bound(py) };
    let added = PyTuple::new(py, axes.iter().map(new))?;
    let picked = array.get_item(PyTuple::new(py, key)?)?;
    picked.call_method1(intern!(py, "transpose"), (order,))?.get_item(added)
}

/// True if an array needs no other order of its axes.
pub(super) fn is_in_order(ndim: usize, axes: &[Option<usize>]) -> bool {
    let kept = axes.iter().skip_while(|axis| axis.is_none());
    kept.copied().eq((0..ndim).map(Some))
}

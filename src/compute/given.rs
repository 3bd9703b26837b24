//! The operands of a function: what NumPy computes with, and what is known of it as a field.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple, PyType};

use super::known::Kind;
use crate::device::{Device, Target};
use crate::error::{Error, Failure};
use crate::field::{Field, Halo, Operand};
use crate::layout::Extents;
use crate::managed::Managed;
use crate::protocol::buffer::shape_and_dtype;
use crate::protocol::{Request, is_plain_ndarray};
use crate::python::numpy::{array_held_by, array_over, dtype_to, import_or_convert, is_number};
use crate::python::storage::PyStorage;
use crate::storage::Residence;

/// An operand.
pub(super) enum Given<'py> {
    /// A number, or what NumPy takes for one.
    Number(Bound<'py, PyAny>),
    /// An array of exactly NumPy's class.
    Array(Bound<'py, PyAny>, Extents),
    /// A storage with its buffer on the host, up to date.
    Storage(Bound<'py, PyStorage>, Arc<Field>),
    /// A storage with a buffer on a GPU. Which side counts is decided later.
    OnGpu(Bound<'py, PyStorage>, Arc<Field>),
    /// Memory of another library, perhaps with names.
    Foreign(Managed, Option<Box<Field>>),
}

impl<'py> Given<'py> {
    /// Reads an object; `None` if it is to decide what happens. Of other objects with memory on both
    /// sides that on a GPU counts if a storage `beside_gpu` has a buffer there.
    pub(super) fn read(
        object: &Bound<'py, PyAny>,
        what: &str,
        beside_gpu: impl FnOnce() -> bool,
    ) -> PyResult<Option<Self>> {
        let py = object.py();
        if let Ok(storage) = object.cast::<PyStorage>() {
            let field = storage.get().storage().field();
            return Ok(Some(match storage.get().storage().residence() {
                Residence::Host => {
                    storage.get().host(py, what)?;
                    Self::Storage(storage.clone(), field)
                }
                _ => Self::OnGpu(storage.clone(), field),
            }));
        }
        if is_number(object) {
            return Ok(Some(Self::Number(object.clone())));
        }
        if is_plain_ndarray(object) {
            return Self::array(object.clone()).map(Some);
        }
        if object.is_none() || object.is_instance(numpys_class(py, "generic")?)? {
            return Ok(Some(Self::Number(object.clone())));
        }
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            let numpy = py.import(intern!(py, "numpy"))?;
            return Self::array(numpy.call_method1(intern!(py, "asarray"), (object,))?).map(Some);
        }
        if has_the_last_word(object)? {
            return Ok(None);
        }
        let target = beside_gpu().then_some(Target::Gpu(None));
        Self::foreign(object, Request::shared(target)).map(Some)
    }

    fn array(array: Bound<'py, PyAny>) -> PyResult<Self> {
        let shape = match shape_and_dtype(&array) {
            Some((shape, _)) => shape,
            None => array.getattr(intern!(array.py(), "shape"))?.extract::<Vec<i64>>()?.into(),
        };
        Ok(if shape.is_empty() { Self::Number(array) } else { Self::Array(array, shape) })
    }

    /// An array of another library, or an object that NumPy takes for an element.
    fn foreign(object: &Bound<'py, PyAny>, request: Request) -> PyResult<Self> {
        let arrival = match import_or_convert(object, request, None) {
            Err(Failure::Ours(Error::Type(_))) => return Ok(Self::Number(object.clone())),
            other => other?,
        };
        let halo = || Some(Halo::from_elem((0, 0), arrival.memory.layout().ndim()));
        let named = |dims| Box::new(Field { dims: Some(dims), halo: halo(), ..Field::default() });
        let field = arrival.dims().cloned().map(named);
        Ok(Self::Foreign(arrival.acquired(object.py())?, field))
    }

    /// Shape and labels; `None` for a number.
    pub(super) fn operand(&self) -> Option<Operand<'_>> {
        Some(match self {
            Self::Number(_) => return None,
            Self::Array(_, shape) => Operand { shape, field: None },
            Self::Storage(..) | Self::OnGpu(..) => {
                let (memory, field) = self.storage()?;
                Operand { shape: memory.layout().shape(), field: Some(field) }
            }
            Self::Foreign(memory, field) => {
                Operand { shape: memory.layout().shape(), field: field.as_deref() }
            }
        })
    }

    /// Layout and field of a storage.
    pub(super) fn storage(&self) -> Option<(&Managed, &Arc<Field>)> {
        match self {
            Self::Storage(storage, field) | Self::OnGpu(storage, field) => {
                Some((storage.get().storage().managed(), field))
            }
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
            Self::Storage(..) => Some(Residence::Host),
            Self::OnGpu(storage, _) => Some(storage.get().storage().residence()),
            _ => None,
        }
    }

    /// True unless a GPU may have something to do with it.
    pub(super) fn is_of_host(&self) -> bool {
        match self {
            Self::Number(_) | Self::Array(..) | Self::Storage(..) => true,
            Self::OnGpu(..) => false,
            Self::Foreign(memory, _) => memory.device().is_host(),
        }
    }

    /// True for an array whose newest values are on a GPU.
    pub(super) fn is_on_gpu(&self) -> bool {
        match self {
            Self::Number(_) | Self::Array(..) | Self::Storage(..) => false,
            Self::OnGpu(storage, _) => storage.get().storage().is_device_newest(),
            Self::Foreign(memory, _) => is_on_gpu(memory.device()),
        }
    }

    /// True if a GPU can have the values without a copy by the user.
    pub(super) fn is_for_gpu(&self) -> bool {
        match self {
            Self::Number(_) | Self::OnGpu(..) => true,
            Self::Array(..) | Self::Storage(..) => false,
            Self::Foreign(memory, _) => is_on_gpu(memory.device()),
        }
    }

    /// Refuses an array that cannot be had at `target` without a copy by the user.
    pub(super) fn check_at(&self, target: Target, what: &str) -> PyResult<()> {
        match self {
            Self::Number(_) => Ok(()),
            Self::Array(..) if target == Target::Host => Ok(()),
            Self::Array(..) => Err(elsewhere(what, target, "an array of NumPy").into()),
            Self::Storage(..) if target == Target::Host => Ok(()),
            Self::Storage(..) => Err(elsewhere(what, target, "a CPUStorage").into()),
            Self::OnGpu(storage, _) => check_storage_at(storage, target, what),
            Self::Foreign(memory, _) if target.reaches(memory.device()) => Ok(()),
            Self::Foreign(memory, _) => {
                Err(elsewhere(what, target, &format!("memory on {}", memory.device())).into())
            }
        }
    }

    /// The array of NumPy, or the number, with its axes in the order of a result.
    pub(super) fn value(
        &self,
        py: Python<'py>,
        axes: &[Option<usize>],
        what: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Self::Storage(storage, _) = self {
            return aligned(storage, axes, what);
        }
        match self.at(py, Target::Host, what)? {
            At::Object(object, ndim) => moved(object.clone(), ndim, axes),
            At::Memory(memory) => {
                moved(array_over(py, memory, true)?, memory.layout().ndim(), axes)
            }
        }
    }

    /// The same with its buffer on the host, up to date.
    pub(super) fn on_host(self, py: Python<'py>, what: &str) -> PyResult<Self> {
        Ok(match self {
            Self::OnGpu(storage, field) => {
                storage.get().host(py, what)?;
                Self::Storage(storage, field)
            }
            other => other,
        })
    }

    /// The memory or object to compute with at a target where there is one.
    pub(super) fn at(&self, py: Python<'py>, target: Target, what: &str) -> PyResult<At<'_, 'py>> {
        Ok(match self {
            Self::Number(object) => At::Object(object, 0),
            Self::Array(array, shape) => At::Object(array, shape.len()),
            Self::Storage(storage, _) => At::Memory(storage.get().storage().managed()),
            Self::Foreign(memory, _) => At::Memory(memory),
            Self::OnGpu(storage, _) => At::Memory(memory_at(py, storage.get(), target, what)?),
        })
    }

    /// A stand-in without elements, from which NumPy tells the type of a result.
    pub(super) fn stand_in(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let dtype = match self {
            Self::Number(number) => return Ok(number.clone()),
            Self::Array(array, ..) => array.getattr(intern!(py, "dtype"))?,
            Self::Foreign(memory, _) => dtype_to(py, memory.dtype())?,
            Self::Storage(storage, _) | Self::OnGpu(storage, _) => {
                dtype_to(py, storage.get().storage().dtype())?
            }
        };
        py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "empty"), (0, dtype))
    }
}

/// An array over the buffer of a storage on the host, up to date, which the storage keeps.
///
/// # Errors
/// GTNoSuchBufferError that names `what` needs the buffer, if there is none.
pub(super) fn array_of<'py>(
    storage: &Bound<'py, PyStorage>,
    what: &str,
    readonly: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let memory = storage.get().host(storage.py(), what)?;
    // SAFETY: the storage's own buffer on the host: it never changes, and lives as long as the
    // storage (`Storage::buffers`).
    unsafe { array_held_by(storage.as_any(), memory, readonly) }
}

/// A read-only array over the same buffer, with its axes in the order of a result.
fn aligned<'py>(
    storage: &Bound<'py, PyStorage>,
    axes: &[Option<usize>],
    what: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let memory = storage.get().host(storage.py(), what)?;
    let ndim = memory.layout().ndim();
    if !is_in_order(ndim, axes)
        && let Ok(view) = memory.align(axes)
    {
        // SAFETY: as in `array_of`.
        return unsafe { array_held_by(storage.as_any(), &view, true) };
    }
    moved(array_of(storage, what, true)?, ndim, axes) // without axes of extent 1
}

/// An operand where it is computed with.
pub(super) enum At<'a, 'py> {
    /// A number, or an array of NumPy with as many dimensions.
    Object(&'a Bound<'py, PyAny>, usize),
    /// Memory that is up to date once the work in its timeline is done.
    Memory(&'a Managed),
}

fn is_on_gpu(device: Device) -> bool {
    Residence::for_memory_on(device) != Residence::Host
}

/// Refuses a storage that has no buffer at `target`.
pub(super) fn check_storage_at(
    storage: &Bound<'_, PyStorage>,
    target: Target,
    what: &str,
) -> PyResult<()> {
    let object = storage.get().storage();
    let side = match target {
        Target::Host => object.host_as_is(),
        Target::Gpu(_) => object.device_as_is().filter(|one| target.reaches(one.device())),
    };
    if side.is_some() {
        return Ok(());
    }
    let (class, ordinal) = (storage.get_type().name()?, object.residence().ordinal());
    let number = ordinal.map_or_else(String::new, |number| format!(" on GPU {number}"));
    Err(elsewhere(what, target, &format!("a {class}{number}")).into())
}

/// The buffer of a storage at a target.
pub(super) fn memory_at<'a>(
    py: Python<'_>,
    storage: &'a PyStorage,
    target: Target,
    what: &str,
) -> PyResult<&'a Managed> {
    if target == Target::Host { storage.host(py, what) } else { storage.device(py, what) }
}

/// The refusal of an array that would have to be copied.
pub(super) fn elsewhere(what: &str, target: Target, got: &str) -> Error {
    let device = match target {
        Target::Gpu(Some(number)) => format!("('gpu', {number})"),
        Target::Gpu(None) => "'gpu'".into(),
        Target::Host => "'cpu'".into(),
    };
    Error::Buffer(format!(
        "{what}: expected arrays on {target}, where it computes, got {got}; copy it with \
         dlfield.storage(array, device={device})"
    ))
}

/// A class of NumPy's.
pub(super) fn numpys_class<'py>(
    py: Python<'py>,
    name: &'static str,
) -> PyResult<&'py Bound<'py, PyType>> {
    static GENERIC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static ARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let known = if name == "generic" { &GENERIC } else { &ARRAY };
    known.import(py, "numpy", name)
}

/// True for an array that decides itself what a function of it and a storage is: one with universal
/// functions of its own (xarray, Dask, pandas), and a field of `gt4py.next`. Arrays of CuPy are
/// operands like any other.
pub(super) fn has_the_last_word(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let (py, class) = (object.py(), object.get_type());
    let module = class.getattr_opt(intern!(py, "__module__"))?;
    let module = module.and_then(|module| module.extract::<String>().ok()).unwrap_or_default();
    let is_of = |package: &str| module.strip_prefix(package).is_some_and(is_end);
    if is_of("gt4py.next") {
        return Ok(true);
    }
    let name = intern!(py, "__array_ufunc__");
    let Some(own) = class.getattr_opt(name)? else { return Ok(false) };
    Ok(!own.is(&numpys_class(py, "ndarray")?.getattr(name)?) && !is_of("cupy"))
}

/// True for what may follow the name of a package.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('.')
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
    let all = pyo3::types::PySlice::full(py).into_any();
    let first = |axis: usize| match axes.contains(&Some(axis)) {
        true => Ok(all.clone()),
        false => Ok(0_usize.into_pyobject(py)?.into_any()), // of extent 1
    };
    let key = (0..ndim).map(first).collect::<PyResult<Vec<_>>>()?;
    let named: Vec<usize> = axes.iter().copied().flatten().collect();
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

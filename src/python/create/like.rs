//! Fresh memory like some other: `empty_like`, `zeros_like`, `ones_like`, `full_like`; and `like=`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt};

use super::fresh::item_of;
use crate::alloc::Fill;
use crate::dtype::DType;
use crate::error::{Error, Failure};
use crate::field::{Field, is_only_numbered};
use crate::layout::Extents;
use crate::managed::Managed;
use crate::protocol::{Arrival, Request, import};
use crate::python::numpy::{dtype_from, import_stand_in};
use crate::python::options::{agree, given, is_set, parse};
use crate::python::storage::PyStorage;
use crate::storage::{Order, Spec, Storage};

/// Allocate a storage like another, whose values are undefined.
///
/// Parameters
/// ----------
/// data
///     The model: a storage, or an array as for `as_storage`. Shape, dtype, dims, halo, layout,
///     alignment and origin are the model's, unless an option says otherwise. Its values are not
///     read, so that byte-swapped and masked arrays, and tensors that require a gradient, will do.
/// dtype : optional
///     Of the new storage; the model's by default, which must then be numeric.
/// **options
///     As for `empty`.
///
/// Returns
/// -------
/// CPUStorage, GPUStorage, SoftwareManagedGPUStorage or CUDAManagedGPUStorage
///     As device and managed say; of the model's kind by default.
///
/// Raises
/// ------
/// TypeError, BufferError, ValueError, MemoryError, DeviceUnavailable
///     As `as_storage` for the model, and as `empty`.
#[pyfunction]
#[pyo3(signature = (data, dtype = None, **options))]
pub(crate) fn empty_like(
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    like(data, dtype, options, |_| Ok(None))
}

/// Allocate a storage of zeros like another.
///
/// Parameters, result and errors are those of `empty_like`.
#[pyfunction]
#[pyo3(signature = (data, dtype = None, **options))]
pub(crate) fn zeros_like(
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    like(data, dtype, options, |_| Ok(Some(Vec::new())))
}

/// Allocate a storage of ones like another.
///
/// Parameters, result and errors are those of `empty_like`.
#[pyfunction]
#[pyo3(signature = (data, dtype = None, **options))]
pub(crate) fn ones_like(
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    let one = PyInt::new(data.py(), 1);
    like(data, dtype, options, |dtype| item_of(&one, dtype).map(Some))
}

/// Allocate a storage like another with `fill_value` in every element, converted as NumPy does.
///
/// Other parameters, result and errors are those of `empty_like`.
#[pyfunction]
#[pyo3(signature = (data, fill_value, dtype = None, **options))]
pub(crate) fn full_like(
    data: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyStorage>> {
    like(data, dtype, options, |dtype| item_of(fill_value, dtype).map(Some))
}

/// Imports an array of which no value is read: its type may be one that storages do not hold.
fn import_model(data: &Bound<'_, PyAny>, dtype: Option<DType>) -> Result<Arrival, Failure> {
    match import(data, Request::SHARED) {
        Err(failure @ Failure::Ours(Error::Buffer(_))) => {
            import_stand_in(data, dtype)?.ok_or(failure)
        }
        answer => answer,
    }
}

/// `item` gives the bytes of one item, none for zeros, and `None` for anything.
fn like(
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
    item: impl FnOnce(DType) -> PyResult<Option<Vec<u8>>>,
) -> PyResult<Py<PyStorage>> {
    let dtype = dtype.filter(|dtype| is_set(dtype)).map(dtype_from).transpose()?;
    let model = import_model(data, dtype)?;
    let (memory, mut spec) = (&model.memory, model.spec().into_owned());
    let own = spec.field.clone();
    if has_option(options, "dims")? {
        spec.field.dims = None; // those of the model: fresh memory may have names of its own
    }
    let dtype = dtype.unwrap_or(memory.dtype());
    parse(options, &mut spec, memory.layout().ndim())?;
    if !has_option(options, "default_origin")? {
        spec.field.origin = origin_under(&own, &spec.field, memory.layout().ndim());
    }
    let item = item(dtype)?;
    let fill = match &item {
        None => Fill::Nothing,
        Some(zeros) if zeros.is_empty() => Fill::Zeros,
        Some(item) => Fill::Item(item),
    };
    let storage = data.py().detach(|| Storage::allocate_like(memory, dtype, &spec, fill))?;
    PyStorage::wrap(data.py(), storage, None)
}

fn has_option(options: Option<&Bound<'_, PyDict>>, name: &str) -> PyResult<bool> {
    options.map_or(Ok(false), |options| given(options, name))
}

/// The origin of `model`, unless the names of `field` are others, in whose order it would count.
fn origin_under(model: &Field, field: &Field, ndim: usize) -> Option<Extents> {
    let counts_alike = field.dims == model.dims
        || (field.dims.is_none() || model.dims.is_none())
            && field.axes_in_order(ndim) == model.axes_in_order(ndim);
    model.origin.clone().filter(|_| counts_alike)
}

/// What a call requests of a storage with the values of an array: to be like a model, except for
/// what the options name.
pub(super) struct Requested<'a, 'py> {
    model: Option<Box<Arrival>>,
    options: Option<&'a Bound<'py, PyDict>>,
}

impl<'a, 'py> Requested<'a, 'py> {
    /// # Errors
    /// As `as_storage` for the model.
    pub(super) fn read(
        like: Option<&Bound<'py, PyAny>>,
        options: Option<&'a Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let like = like.filter(|like| is_set(like));
        let model =
            like.map(|like| import_model(like, None).map_err(|failure| failure.about("like")));
        Ok(Self { model: model.transpose()?.map(Box::new), options })
    }

    /// True if neither a model nor options are given.
    pub(super) fn is_nothing(&self) -> bool {
        self.model.is_none() && self.options.is_none()
    }

    /// A storage over `memory`, of which `own` is known: the labels are the model's.
    ///
    /// # Errors
    /// As `parse`; `ValueError` for a model of another shape or with other names.
    pub(super) fn over(&self, memory: &Managed, own: &mut Spec) -> PyResult<()> {
        if let Some(model) = &self.model {
            check_same_shape(memory, &model.memory)?;
            self.label(own, model.spec().into_owned(), memory.layout().ndim())?;
        }
        parse(self.options, own, memory.layout().ndim())
    }

    /// A storage for a copy of `memory`: device, layout and alignment are the model's too.
    ///
    /// # Errors
    /// As [`Requested::over`].
    pub(super) fn copy_of(&self, memory: &Managed, own: &mut Spec) -> PyResult<()> {
        let Some(model) = &self.model else { return self.over(memory, own) };
        let Spec { default_residence, field, .. } = model.spec().into_owned();
        let ranks = model.memory.layout().ranks(field.order.as_deref().unwrap_or_default());
        own.default_residence = default_residence;
        own.field.alignment = field.alignment;
        own.field.aligned_index = field.aligned_index;
        self.over(memory, own)?;
        if own.layout == Order::Open && own.preset.is_none() {
            own.layout = Order::Ranks(ranks);
        }
        Ok(())
    }

    /// Puts the labels of a model into `own`, which keeps those that the model does not have.
    fn label(&self, own: &mut Spec, model: Spec, ndim: usize) -> PyResult<()> {
        let labels = model.field.clone();
        if model.field.halo.is_some() || model.unknown_halo {
            (own.field.halo, own.unknown_halo) = (model.field.halo, model.unknown_halo);
        }
        let named = has_option(self.options, "dims")?;
        let before = own.field.dims.clone();
        if let Some(names) = model.field.dims.filter(|names| !is_only_numbered(names))
            && !named
        {
            own.field.dims = Some(agree("dims of like", own, names)?);
        }
        if model.field.origin.is_some() || own.field.dims != before {
            own.field.origin = origin_under(&labels, &own.field, ndim);
        }
        Ok(())
    }
}

fn check_same_shape(memory: &Managed, model: &Managed) -> PyResult<()> {
    let (found, got) = (memory.layout().shape(), model.layout().shape());
    if found == got {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "like: expected a model of shape {found:?}, as the array has, got {got:?}; pass dims= and \
         halo= instead"
    )))
}

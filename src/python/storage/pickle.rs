//! Pickling: the values in the order of memory, and the labels of the field; never a pointer.
//! Padding is left out: the new storage adds its own.
//!
//! With protocol 5 the values are a `PickleBuffer`, which may travel out of band (PEP 574). A dense
//! storage is pickled without a copy. A buffer that comes back writable, with aligned elements, and on
//! the boundary that the storage asked for, becomes the memory of the new storage.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyTuple};

use super::class::{PyStorage, copy_with};
use crate::alloc::Fill;
use crate::device::Target;
use crate::dtype::DType;
use crate::field::{Dim, Dims, Field};
use crate::interpreter::Inside;
use crate::layout::{Extents, Layout, strides_by_rank};
use crate::protocol::buffer::ByteView;
use crate::protocol::read::names;
use crate::protocol::{Request, import};
use crate::python::options::{alignment, ints, managed_name, read_halo, read_managed};
use crate::storage::{Order, Spec, Storage};

/// Names, halo, aligned index, alignment in bytes, origin. Each may be anything in a forged pickle.
type PickledField<'py> = (
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
    Bound<'py, PyAny>,
    Option<Bound<'py, PyAny>>,
);

/// Makes the result of `__reduce_ex__`. For a storage on a GPU it has a value of `managed=`.
pub(super) fn reduce<'py>(
    slf: &Bound<'py, PyStorage>,
    protocol: i32,
) -> PyResult<Bound<'py, PyTuple>> {
    let _inside = Inside::enter(slf.py());
    let (py, storage) = (slf.py(), slf.get().storage());
    let (shape, ranks, field) = (storage.shape(), storage.ranks(), storage.field());
    let names = |dims: &Dims| dims.iter().map(Dim::to_string).collect::<Vec<_>>();
    let labels = (
        field.dims.as_ref().map(names),
        field.halo.as_ref().map(|halo| halo.to_vec()),
        field.aligned_index.as_ref().map(|index| index.to_vec()),
        field.alignment.max(1),
        field.origin.as_ref().map(|origin| origin.to_vec()),
    );
    let values = values(py, storage, protocol)?;
    let rebuild =
        py.import(intern!(py, "dlfield._core"))?.getattr(intern!(py, "rebuild_storage"))?;
    let (shape, ranks) = (PyTuple::new(py, shape)?, PyTuple::new(py, ranks)?);
    let residence = storage.residence();
    let managed = residence.ordinal().map(|_| (managed_name(residence.managed_by()),));
    let arguments = (values, storage.dtype().name(), shape, ranks, labels, managed);
    let arguments = arguments.into_pyobject(py)?;
    (rebuild, arguments).into_pyobject(py)
}

/// The values in the order of memory and without gaps, as one row of bytes: a library that sends
/// them in pieces cuts along the first dimension.
fn values<'py>(py: Python<'py>, storage: &Storage, protocol: i32) -> PyResult<Bound<'py, PyAny>> {
    let dense = py.detach(|| storage.packed())?;
    let readonly = dense.readonly();
    let bytes = i64::try_from(dense.layout().nbytes()).unwrap_or(i64::MAX);
    let row = dense.retyped(DType::UInt8, Layout::compact(Extents::from_slice(&[bytes]), 1)?)?;
    let view = Bound::new(py, ByteView::new(row, readonly)?)?.into_any();
    if protocol >= 5 {
        return py
            .import(intern!(py, "pickle"))?
            .call_method1(intern!(py, "PickleBuffer"), (view,));
    }
    PyMemoryView::from(&view)?.call_method0(intern!(py, "tobytes"))
}

/// Make a storage of what was pickled. Its arguments may change with any version.
#[pyfunction]
#[pyo3(signature = (values, dtype, shape, ranks, known, managed = None))]
pub(crate) fn rebuild_storage(
    values: &Bound<'_, PyAny>,
    dtype: &str,
    shape: &Bound<'_, PyAny>,
    ranks: &Bound<'_, PyAny>,
    known: PickledField<'_>,
    managed: Option<(Bound<'_, PyAny>,)>,
) -> PyResult<Py<PyStorage>> {
    let _inside = Inside::enter(values.py());
    let py = values.py();
    let dtype = DType::from_name(dtype)?;
    let (shape, ranks) = (ints("shape", shape)?, ints("ranks", ranks)?);
    let layout = ordered(&shape, &ranks, dtype)?;
    let field = Field { order: Some(ranks.clone()), ..described(known)? };
    let managed = managed.map(|(by,)| read_managed(&by)).transpose()?;
    // On the current GPU: the number of a GPU of another machine means nothing.
    let device = managed.map(|_| Target::Gpu(None));
    let unknown_halo = field.halo.is_none();
    let spec = Spec { device, managed, unknown_halo, field, ..Spec::default() };
    let view = PyMemoryView::from(values)?;
    if layout.size() == 0 {
        let bytes: usize = view.getattr(intern!(py, "nbytes"))?.extract()?;
        if bytes > 0 {
            let text = format!("bytes: expected 0 of them without gaps, got {bytes}");
            return Err(PyValueError::new_err(text));
        }
        let spec = Spec { layout: Order::Ranks(ranks), ..spec };
        return PyStorage::wrap(py, Storage::allocate(&shape, dtype, &spec, Fill::Nothing)?, None);
    }
    let bytes = view.call_method1(intern!(py, "cast"), ("B",))?;
    let memory = import(&bytes, Request::SHARED)?.memory.retyped(dtype, layout)?;
    let fits = managed.is_none() && !memory.readonly() && memory.is_aligned();
    let shared = fits.then(|| Storage::wrap(memory.clone(), &spec).ok()).flatten();
    let storage = shared.map_or_else(|| copy_with(py, &memory, &spec), Ok)?;
    PyStorage::wrap(py, storage, None)
}

/// Reads what is known of the field like the options of a new storage.
fn described((dims, halo, aligned_index, bytes, origin): PickledField<'_>) -> PyResult<Field> {
    let index = |name: &str, index: Option<Bound<'_, PyAny>>| {
        index.map(|index| ints(name, &index)).transpose()
    };
    let dims = dims.map(|dims| names(&dims)).transpose()?;
    let halo = halo.map(|halo| read_halo(&halo, dims.as_ref())).transpose()?;
    Ok(Field {
        dims,
        halo,
        aligned_index: index("aligned_index", aligned_index)?,
        alignment: alignment(&bytes)?,
        origin: index("default_origin", origin)?,
        order: None,
    })
}

fn ordered(shape: &[i64], ranks: &[i64], dtype: DType) -> PyResult<Layout> {
    let strides =
        strides_by_rank(shape, ranks).filter(|_| shape.len() == ranks.len()).ok_or_else(|| {
            PyValueError::new_err(format!(
                "pickle: expected each rank once for the shape {shape:?}, got {ranks:?}"
            ))
        })?;
    Ok(Layout::new(shape.into(), strides, dtype.itemsize())?)
}

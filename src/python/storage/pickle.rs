//! Pickling: the values in the order in which they lie, and what the field knows; never a pointer.
//!
//! With protocol 5 the values are a `PickleBuffer`, which may travel out of band (PEP 574). A dense
//! storage is pickled without a copy; a buffer that comes back writable, and aligned as wished,
//! becomes the memory of the new storage.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyTuple};
use pyo3::{intern, wrap_pyfunction};

use super::class::{PyStorage, copy_with};
use super::sides;
use crate::alloc::{Fill, HOST_ALIGNMENT};
use crate::device::Target;
use crate::dtype::DType;
use crate::field::{Dim, Field, HaloWidth};
use crate::layout::{Extents, Layout, strides_by_rank};
use crate::managed::Managed;
use crate::protocol::arrive;
use crate::protocol::buffer::ByteView;
use crate::python::options::ints;
use crate::storage::{ManagedBy, Order, Residence, Spec, Storage};

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(rebuild_storage, module)?)
}

/// Names, halo, aligned index, alignment in bytes, origin.
type Known =
    (Option<Vec<String>>, Option<Vec<HaloWidth>>, Option<Vec<i64>>, usize, Option<Vec<i64>>);

/// What stands for a kind of storage on a GPU; a storage of the host has none.
const KINDS: [ManagedBy; 3] = [ManagedBy::Nobody, ManagedBy::Dlfield, ManagedBy::Cuda];

fn kind(residence: Residence) -> Option<u8> {
    let by = match residence {
        Residence::Host => return None,
        Residence::Device(_) => ManagedBy::Nobody,
        Residence::Mirrored(_) => ManagedBy::Dlfield,
        Residence::Unified(_) => ManagedBy::Cuda,
    };
    KINDS.iter().position(|kind| *kind == by).and_then(|at| u8::try_from(at).ok())
}

/// What `__reduce_ex__` answers.
pub(super) fn reduce<'py>(
    slf: &Bound<'py, PyStorage>,
    protocol: i32,
) -> PyResult<Bound<'py, PyTuple>> {
    let (py, storage) = (slf.py(), slf.get());
    let (managed, field) = (storage.managed(), storage.field());
    let layout = managed.layout();
    let ranks = storage.storage().ranks();
    let known: Known = (
        field.dims.as_ref().map(|dims| dims.iter().map(Dim::to_string).collect()),
        field.halo.as_ref().map(|halo| halo.to_vec()),
        field.aligned_index.as_ref().map(|index| index.to_vec()),
        field.alignment.max(1),
        field.origin.as_ref().map(|origin| origin.to_vec()),
    );
    let values = values(py, &sides::values(py, storage, &storage.storage())?, &ranks, protocol)?;
    let rebuild =
        py.import(intern!(py, "dlfield._core"))?.getattr(intern!(py, "rebuild_storage"))?;
    let (shape, ranks) = (PyTuple::new(py, layout.shape())?, PyTuple::new(py, ranks)?);
    let (name, kind) = (managed.dtype().name(), kind(storage.residence()));
    let arguments = (values, name, shape, ranks, known, kind).into_pyobject(py)?;
    (rebuild, arguments).into_pyobject(py)
}

/// The values in memory order and without gaps.
fn values<'py>(
    py: Python<'py>,
    managed: &Managed,
    ranks: &[i64],
    protocol: i32,
) -> PyResult<Bound<'py, PyAny>> {
    let mut axes: Vec<usize> = (0..ranks.len()).collect();
    axes.sort_by_key(|&axis| ranks.get(axis).copied());
    let ordered = managed.permute(&axes)?;
    let dense = if ordered.layout().is_c_contiguous() {
        ordered
    } else {
        let c_order = Order::Ranks((0_i64..).take(axes.len()).collect());
        copy_with(py, &ordered, &Spec { layout: c_order, ..Spec::default() })?.managed().clone()
    };
    let readonly = dense.readonly();
    let view = Bound::new(py, ByteView::new(dense, readonly)?)?.into_any();
    if protocol >= 5 {
        return py
            .import(intern!(py, "pickle"))?
            .call_method1(intern!(py, "PickleBuffer"), (view,));
    }
    let bytes = PyMemoryView::from(&view)?.call_method0(intern!(py, "tobytes"))?;
    Ok(bytes.cast_into::<PyBytes>()?.into_any())
}

/// Make a storage of what was pickled. For pickle; its arguments may change with any version.
#[pyfunction]
#[pyo3(signature = (values, dtype, shape, ranks, known, kind = None))]
fn rebuild_storage(
    values: &Bound<'_, PyAny>,
    dtype: &str,
    shape: &Bound<'_, PyAny>,
    ranks: &Bound<'_, PyAny>,
    known: Known,
    kind: Option<u8>,
) -> PyResult<Py<PyStorage>> {
    let py = values.py();
    let dtype = DType::from_name(dtype)?;
    let (shape, ranks) = (ints("shape", shape)?, ints("ranks", ranks)?);
    let layout = ordered(&shape, &ranks, dtype)?;
    let (dims, halo, aligned_index, alignment, origin) = known;
    let field = Field {
        dims: dims.map(|dims| dims.iter().map(|name| Dim::from_name(name)).collect()),
        halo: halo.map(Into::into),
        aligned_index: aligned_index.map(Extents::from_vec),
        alignment,
        origin: origin.map(Extents::from_vec),
        order: Some(ranks.clone()),
    };
    let spec = Spec { unknown_halo: field.halo.is_none(), field, ..Spec::default() };
    let managed_by = kind.and_then(|kind| KINDS.get(usize::from(kind)).copied());
    // On the GPU that is used at the moment: the number of another machine's means nothing.
    let spec = Spec { device: managed_by.map(|_| Target::Gpu(None)), managed: managed_by, ..spec };
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
    let managed = arrive(&bytes)?.managed.retyped(dtype, layout)?;
    // As every block that dlfield allocates: JAX shares no other.
    let aligned = managed.layout().size() == 0 || managed.address().is_multiple_of(HOST_ALIGNMENT);
    let fits = !managed.readonly() && aligned;
    let shared =
        if fits && kind.is_none() { Storage::wrap(managed.clone(), &spec).ok() } else { None };
    let storage = match shared {
        Some(storage) => storage,
        None => copy_with(py, &managed, &spec)?,
    };
    PyStorage::wrap(py, storage, None)
}

fn ordered(shape: &[i64], ranks: &[i64], dtype: DType) -> PyResult<Layout> {
    let strides =
        strides_by_rank(shape, ranks).filter(|_| shape.len() == ranks.len()).ok_or_else(|| {
            PyValueError::new_err("pickle: expected a shape and its ranks, got others")
        })?;
    Ok(Layout::new(shape.into(), strides, dtype.itemsize())?)
}

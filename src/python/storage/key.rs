//! Reading a key: basic indexing is done here, NumPy does the rest.

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyEllipsis, PyInt, PyList, PySlice, PyString, PyTuple};
use pyo3::{ffi, intern};
use smallvec::SmallVec;

use super::class::PyStorage;
use super::sides;
use crate::dtype::DType;
use crate::error::{Error, Failure};
use crate::field::{AxisOrder, Dim, Dims, align_key};
use crate::interpreter::{Caller, Inside};
use crate::layout::Item;
use crate::protocol::read::shown;
use crate::protocol::{Arrival, Request, gt4py, import, is_plain_ndarray};
use crate::python::numpy::array_over;
use crate::storage::Storage;

pub(super) type Items = SmallVec<[Item; 6]>;

/// Gives `storage[key]`: a number, a view, or for advanced keys an ndarray of its own (of CuPy if
/// there is no buffer on the host, GDP-3).
pub(super) fn get<'py>(
    slf: &Bound<'py, PyStorage>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let _inside = Inside::enter(slf.py());
    let (py, object) = (slf.py(), slf.get());
    let storage = object.storage();
    if let Some(items) = basic(key)? {
        let view = storage.select(&items)?;
        if view.managed().layout().ndim() == 0 && !items.contains(&Item::Ellipsis) {
            return sides::numpy_of(py, &view)?.get_item(PyTuple::empty(py));
        }
        if !has_scalar_array(key) {
            return Ok(object.view(py, view)?.into_bound(py).into_any());
        }
    }
    let array = if storage.host_as_is().is_none() {
        sides::cupy_to_read(slf, "advanced indexing")?
    } else {
        array_over(py, object.host(py, "advanced indexing")?, true)?
    };
    array.get_item(AdvancedKey::read(key)?.into_plain(storage, py)?)
}

/// The entries of a key of integers, slices, None and `...`; `None` for any other, which is
/// advanced.
pub(super) fn basic(key: &Bound<'_, PyAny>) -> PyResult<Option<Items>> {
    let Ok(entries) = key.cast::<PyTuple>() else {
        return Ok(item(key)?.map(|item| SmallVec::from_slice(&[item])));
    };
    entries.iter().map(|entry| item(&entry)).collect()
}

fn item(entry: &Bound<'_, PyAny>) -> PyResult<Option<Item>> {
    if let Ok(slice) = entry.cast::<PySlice>() {
        let bound = |name| bound(&slice.getattr(name)?);
        let (start, stop) =
            (bound(intern!(entry.py(), "start"))?, bound(intern!(entry.py(), "stop"))?);
        return Ok(Some(Item::Slice { start, stop, step: bound(intern!(entry.py(), "step"))? }));
    }
    if entry.is_none() {
        return Ok(Some(Item::NewAxis));
    }
    if entry.is_instance_of::<PyEllipsis>() {
        return Ok(Some(Item::Ellipsis));
    }
    if entry.is_instance_of::<PyBool>() || is_array(entry)? {
        return Ok(None);
    }
    Ok(whole(entry)?.map(Item::At))
}

/// True for an array, which is a list of indices even if it has one element.
fn is_array(entry: &Bound<'_, PyAny>) -> PyResult<bool> {
    if entry.is_exact_instance_of::<PyInt>() {
        return Ok(false);
    }
    let ndim = entry.getattr_opt(intern!(entry.py(), "ndim"))?;
    Ok(ndim.is_some_and(|ndim| ndim.extract::<usize>().is_ok_and(|ndim| ndim > 0)))
}

/// True if an integer of the key is an array without dimensions: NumPy gives a copy then.
fn has_scalar_array(key: &Bound<'_, PyAny>) -> bool {
    match key.cast::<PyTuple>() {
        Ok(entries) => entries.iter_borrowed().any(|entry| is_plain_ndarray(&entry)),
        Err(_) => is_plain_ndarray(key),
    }
}

/// Reads an integer; `None` for other objects.
fn whole(entry: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    match index_of(entry) {
        Ok(index) => index.extract().map(Some).map_err(|_| {
            PyIndexError::new_err(format!(
                "index {} is out of bounds: expected one of 64 bits",
                shown(&index)
            ))
        }),
        Err(error) if error.is_instance_of::<PyTypeError>(entry.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a bound of a slice, clamped to 64 bits.
fn bound(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if value.is_none() {
        return Ok(None);
    }
    let index = index_of(value)?;
    let clamped = |_| Ok(if index.lt(0)? { i64::MIN } else { i64::MAX });
    index.extract().or_else(clamped).map(Some)
}

/// `operator.index(value)`.
fn index_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: an object, with the interpreter attached.
    let index = unsafe { ffi::PyNumber_Index(value.as_ptr()) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(value.py(), index) }
}

/// One entry of an advanced key.
struct KeyEntry<'py> {
    key: Bound<'py, PyAny>,
    /// The import of an array of another library.
    source: Option<Arrival>,
    names: Option<Dims>,
    /// The requested order of its axes.
    order: Option<AxisOrder>,
}

/// An advanced key. A capsule among its entries can be taken once: it is read once.
pub(super) struct AdvancedKey<'py> {
    entries: Vec<KeyEntry<'py>>,
    is_tuple: bool,
}

impl<'py> AdvancedKey<'py> {
    pub(super) fn read(key: &Bound<'py, PyAny>) -> PyResult<Self> {
        let entries = match key.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().map(KeyEntry::new).collect::<PyResult<_>>()?,
            Err(_) => vec![KeyEntry::new(key.clone())?],
        };
        Ok(Self { entries, is_tuple: key.is_instance_of::<PyTuple>() })
    }

    /// The key as NumPy takes it for `storage`: arrays of other libraries become NumPy arrays over the
    /// same memory, with their axes ordered by name. Nothing is acquired for a refusal.
    pub(super) fn into_plain(
        mut self,
        storage: &Storage,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let named = self.entries.iter().any(|entry| entry.names.is_some());
        if let Some(dims) = storage.dims().filter(|_| named)
            && !Caller::of_now(py)?.has_matched()
        {
            align(&mut self.entries, &dims)?;
        }
        let arrays = self.entries.into_iter().map(KeyEntry::into_array);
        let arrays = PyTuple::new(py, arrays.collect::<PyResult<Vec<_>>>()?)?;
        if self.is_tuple { Ok(arrays.into_any()) } else { arrays.get_item(0) }
    }

    /// True if the names of a value are those of the last dimensions that the key selects, such as K
    /// behind a mask of I and J: there its position is what its names say.
    pub(super) fn has_behind(&self, value: Option<&Arrival>, storage: &Storage) -> PyResult<bool> {
        match (value.and_then(Arrival::dims), storage.dims()) {
            (Some(own), Some(dims)) if *own != dims && own.iter().all(|dim| dims.contains(dim)) => {
                Ok(names_behind(&dims, &self.entries)?.ends_with(own))
            }
            _ => Ok(false),
        }
    }
}

/// The names of the last dimensions of what an advanced key selects: those behind its last array.
fn names_behind(dims: &Dims, entries: &[KeyEntry<'_>]) -> PyResult<Dims> {
    let widths = entries.iter().map(KeyEntry::width).collect::<PyResult<Vec<_>>>()?;
    let used: usize = widths.iter().flatten().sum();
    let rest = dims.len().saturating_sub(used);
    let dotted = widths.contains(&None);
    let mut left = dims.as_slice();
    let mut behind: Vec<&[Dim]> = Vec::new();
    // Dimensions that no entry stands for are selected whole, as those of dots.
    if !dotted {
        let (before, whole) = left.split_at(left.len().saturating_sub(rest));
        (left, behind) = (before, vec![whole]);
    }
    for (entry, width) in entries.iter().zip(widths).rev() {
        let covered = width.unwrap_or(rest);
        let Some(at) = left.len().checked_sub(covered) else { break };
        let (before, own) = left.split_at(at);
        if entry.keeps_names() {
            behind.push(own);
        } else if !entry.key.is_instance_of::<PyInt>() || entry.key.is_instance_of::<PyBool>() {
            break;
        }
        left = before;
    }
    Ok(behind.into_iter().rev().flatten().cloned().collect())
}

/// Orders the axes of each array with names as the dimensions that it stands for.
fn align(entries: &mut [KeyEntry<'_>], dims: &Dims) -> PyResult<()> {
    let widths = entries.iter().map(KeyEntry::width).collect::<PyResult<Vec<_>>>()?;
    let rest = dims.len().saturating_sub(widths.iter().flatten().sum());
    let mut dims_left = dims.as_slice();
    for (entry, width) in entries.iter_mut().zip(widths) {
        // NumPy refuses more entries than there are dimensions.
        let Some((covered, left)) = dims_left.split_at_checked(width.unwrap_or(rest)) else {
            return Ok(());
        };
        if let Some(names) = &entry.names {
            entry.order = align_key(names, covered, dims)?;
        }
        dims_left = left;
    }
    Ok(())
}

impl<'py> KeyEntry<'py> {
    fn new(key: Bound<'py, PyAny>) -> PyResult<Self> {
        let array = key.py().import("numpy")?.getattr("ndarray")?;
        let (names, source) = if key.is_instance(&array)? {
            (if key.get_type().is(&array) { None } else { gt4py::dims(&key)? }, None)
        } else {
            let source = foreign(&key)?;
            (source.as_ref().and_then(|source| source.dims().cloned()), source)
        };
        Ok(Self { key, source, names, order: None })
    }

    /// The number of dimensions that it stands for; `None` for those that are left.
    fn width(&self) -> PyResult<Option<usize>> {
        if let Some(source) = &self.source {
            let mask = source.memory.dtype() == DType::Bool;
            return Ok(Some(if mask { source.memory.layout().ndim() } else { 1 }));
        }
        if self.key.is_instance_of::<PyEllipsis>() {
            return Ok(None);
        }
        if self.key.is_none() {
            return Ok(Some(0));
        }
        let array = self.key.py().import("numpy")?.call_method1("asarray", (&self.key,))?;
        let mask = array.getattr("dtype")?.getattr("kind")?.extract::<char>()? == 'b';
        Ok(Some(if mask { array.getattr("ndim")?.extract()? } else { 1 }))
    }

    /// True if the dimensions that it stands for stay in the selection, with their names.
    fn keeps_names(&self) -> bool {
        self.key.is_instance_of::<PySlice>() || self.key.is_instance_of::<PyEllipsis>()
    }

    fn into_array(self) -> PyResult<Bound<'py, PyAny>> {
        let array = match self.source {
            Some(source) => {
                let py = self.key.py();
                array_over(py, &sides::on_host(py, &source.acquired(py)?)?, true)?
            }
            None => self.key,
        };
        match self.order {
            Some(order) => array.call_method1("transpose", (order.into_vec(),)),
            None => Ok(array),
        }
    }
}

/// Imports an array of another library; `None` for objects that NumPy reads.
fn foreign(entry: &Bound<'_, PyAny>) -> PyResult<Option<Arrival>> {
    let plain = entry.is_instance_of::<PyList>()
        || entry.is_instance_of::<PySlice>()
        || entry.is_instance_of::<PyInt>() // a bool too
        || entry.is_instance_of::<PyString>()
        || entry.is_instance_of::<PyBytes>()
        || entry.is_none();
    if plain {
        return Ok(None);
    }
    match import(entry, Request::SHARED) {
        Ok(source) => Ok(Some(source)),
        // NumPy judges objects that speak no protocol.
        Err(Failure::Ours(Error::Type(_))) => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

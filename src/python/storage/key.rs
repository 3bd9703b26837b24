//! Reading a key: what is basic indexing is done here, the rest is NumPy's.

use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyEllipsis, PyInt, PyList, PySlice, PyString, PyTuple};
use pyo3::{ffi, intern};
use smallvec::SmallVec;

use super::class::PyStorage;
use super::sides;
use super::source::Source;
use crate::dtype::DType;
use crate::error::{Error, Failure};
use crate::field::{Dims, Order, align_key};
use crate::layout::Item;
use crate::protocol::gt4py;
use crate::python::numpy::array_over;

/// The entries of a basic key.
pub(super) type Items = SmallVec<[Item; 6]>;

/// What `storage[key]` is: a number, a view, or for advanced keys an ndarray of its own (of CuPy where
/// there is no buffer on the host, GDP-3).
pub(super) fn get<'py>(
    slf: &Bound<'py, PyStorage>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, storage) = (slf.py(), slf.get());
    let Some(items) = basic(key)? else {
        if storage.buffers().of_host().is_none() {
            return sides::cupy_to_read(py, storage, "advanced indexing")?
                .get_item(plain(storage, key)?);
        }
        let host = storage.host(py, "advanced indexing")?;
        return array_over(py, &host, true)?.get_item(plain(storage, key)?);
    };
    let view = storage.storage().select(&items)?;
    let number = view.managed().layout().ndim() == 0 && !items.contains(&Item::Ellipsis);
    if number {
        return sides::numpy_of(py, storage, &view)?.get_item(PyTuple::empty(py));
    }
    Ok(storage.view(py, view)?.into_bound(py).into_any())
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

/// An array of integers is a list of indices, also where it has one element only.
fn is_array(entry: &Bound<'_, PyAny>) -> PyResult<bool> {
    if entry.is_exact_instance_of::<PyInt>() {
        return Ok(false);
    }
    let ndim = entry.getattr_opt(intern!(entry.py(), "ndim"))?;
    Ok(ndim.is_some_and(|ndim| ndim.extract::<usize>().is_ok_and(|ndim| ndim > 0)))
}

/// An integer; `None` for what is none.
fn whole(entry: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    match index_of(entry) {
        Ok(index) => index.extract().map(Some).map_err(|_| {
            PyIndexError::new_err(format!(
                "index {index} is out of bounds: expected one of 64 bits"
            ))
        }),
        Err(error) if error.is_instance_of::<PyTypeError>(entry.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A bound of a slice; one that is too large is as good as the largest.
fn bound(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if value.is_none() {
        return Ok(None);
    }
    let index = index_of(value)?;
    match index.extract::<i64>() {
        Ok(number) => Ok(Some(number)),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            Ok(Some(if index.lt(0)? { i64::MIN } else { i64::MAX }))
        }
        Err(error) => Err(error),
    }
}

/// `operator.index(value)`.
fn index_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: an object, with the interpreter attached.
    let index = unsafe { ffi::PyNumber_Index(value.as_ptr()) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(value.py(), index) }
}

/// One entry of an advanced key.
struct Entry<'py> {
    key: Bound<'py, PyAny>,
    /// What it is, where it is an array that NumPy does not know.
    source: Option<Source>,
    names: Option<Dims>,
    /// The order in which its axes are wanted.
    order: Option<Order>,
}

/// An advanced key as NumPy takes it for `storage`: arrays of other libraries become arrays of its
/// own, over the same memory, with their axes where their names say. Nothing is acquired for a
/// refusal.
pub(super) fn plain<'py>(
    storage: &PyStorage,
    key: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let tuple = key.cast::<PyTuple>();
    let mut entries = match tuple {
        Ok(entries) => entries.iter().map(Entry::of).collect::<PyResult<Vec<_>>>()?,
        Err(_) => vec![Entry::of(key.clone())?],
    };
    if let Some(dims) = &storage.field().dims {
        align(&mut entries, dims)?;
    }
    let mut arrays = entries.into_iter().map(Entry::into_array).collect::<PyResult<Vec<_>>>()?;
    match arrays.pop() {
        Some(only) if tuple.is_err() => Ok(only),
        last => {
            Ok(PyTuple::new(key.py(), arrays.into_iter().chain(last).collect::<Vec<_>>())?
                .into_any())
        }
    }
}

/// Finds for each array with names which dimensions it stands for.
fn align(entries: &mut [Entry<'_>], dims: &Dims) -> PyResult<()> {
    if entries.iter().all(|entry| entry.names.is_none()) {
        return Ok(());
    }
    let widths = entries.iter().map(Entry::width).collect::<PyResult<Vec<_>>>()?;
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

impl<'py> Entry<'py> {
    fn of(key: Bound<'py, PyAny>) -> PyResult<Self> {
        let array = key.py().import("numpy")?.getattr("ndarray")?;
        let (names, source) = if key.is_instance(&array)? {
            (if key.get_type().is(&array) { None } else { gt4py::dims(&key)? }, None)
        } else {
            let source = foreign(&key)?;
            (source.as_ref().and_then(|source| source.field.dims.clone()), source)
        };
        Ok(Self { key, source, names, order: None })
    }

    /// How many dimensions it stands for; `None`: for those that are left.
    fn width(&self) -> PyResult<Option<usize>> {
        if let Some(source) = &self.source {
            let mask = source.managed.dtype() == DType::Bool;
            return Ok(Some(if mask { source.managed.layout().ndim() } else { 1 }));
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

    fn into_array(self) -> PyResult<Bound<'py, PyAny>> {
        let array = match &self.source {
            Some(source) => {
                let py = self.key.py();
                array_over(py, &sides::on_host(py, &source.keep(py)?)?, true)?
            }
            None => self.key,
        };
        match self.order {
            Some(order) => array.call_method1("transpose", (order.into_vec(),)),
            None => Ok(array),
        }
    }
}

/// An array of another library; `None` for what NumPy knows.
fn foreign(entry: &Bound<'_, PyAny>) -> PyResult<Option<Source>> {
    let plain = entry.is_instance_of::<PyList>()
        || entry.is_instance_of::<PySlice>()
        || entry.is_instance_of::<PyInt>() // a bool too
        || entry.is_instance_of::<PyString>()
        || entry.is_instance_of::<PyBytes>()
        || entry.is_none();
    if plain {
        return Ok(None);
    }
    match Source::of(entry) {
        Ok(source) => Ok(Some(source)),
        // Of what speaks no protocol NumPy knows what to think.
        Err(Failure::Ours(Error::Type(_))) => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

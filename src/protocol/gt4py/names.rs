//! What objects say of a field besides its memory.
//!
//! - `__gt_dims__` names the axes, as an attribute (GT4Py) or a method (storage allocation note).
//! - `__gt_origin__`, or `default_origin`, is where the domain begins.
//! - `.ndarray` is the array of a `gt4py.next` field.
//! - `__gt_data_interface__` has dims and halo too; a storage adds its own to it here.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::field::{Dim, Dims, Field, Labelled};
use crate::layout::Extents;
use crate::protocol::door::{Answer, Memory, Offer, Request};
use crate::protocol::hooks::Hooks;
use crate::protocol::producer::Recognised;
use crate::protocol::read::{ints, names};

/// Key beside the array interface that is true if a halo exists, but is not known: a plain
/// `"halo": None` says nothing, like every other None.
pub(super) const UNKNOWN_HALO: &str = "halo_unknown";

/// Reads `__gt_dims__`; `None` if the object does not have it, or it is `None`.
pub(crate) fn dims(obj: &Bound<'_, PyAny>) -> PyResult<Option<Dims>> {
    let Some(found) = obj.getattr_opt(intern!(obj.py(), "__gt_dims__"))? else {
        return Ok(None);
    };
    let found = if found.is_callable() { found.call0()? } else { found };
    if found.is_none() { Ok(None) } else { Ok(Some(names(&found)?)) }
}

/// Reads `__gt_origin__` (GT4Py) or `default_origin` (storage allocation note): it counts I, J, K, then
/// the data dimensions, whatever the order of the axes. An origin of zeros is ignored: every
/// `gt4py.next` field whose domain begins at 0 has one.
pub(crate) fn origin(obj: &Bound<'_, PyAny>) -> PyResult<Option<Extents>> {
    for name in [intern!(obj.py(), "__gt_origin__"), intern!(obj.py(), "default_origin")] {
        if let Some(found) = obj.getattr_opt(name)?.filter(|found| !found.is_none()) {
            let origin = ints(&name.to_cow()?, &found)?;
            return Ok(Some(origin).filter(|origin| origin.iter().any(|&at| at != 0)));
        }
    }
    Ok(None)
}

/// Door: `.ndarray`, the array of an object that is not an array itself.
pub(in crate::protocol) fn import_ndarray<'py>(
    obj: &Bound<'py, PyAny>,
    _: Request,
    known: Recognised,
) -> Answer<'py> {
    if !known.has_attributes() {
        return Ok(None);
    }
    let offer = |memory| Offer { memory, labels: Labelled::Nothing, hooks: Hooks::default() };
    Ok(ndarray(obj)?.map(Memory::Wrapped).map(offer))
}

/// The array that a wrapper holds as `.ndarray`.
pub(super) fn ndarray<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = obj.py();
    let Some(inner) = obj.getattr_opt(intern!(py, "ndarray"))? else {
        return Ok(None);
    };
    Ok(Some(inner).filter(|inner| !inner.is(obj) && !inner.is_none() && !inner.is_callable()))
}

/// Adds dims and halo to the interface of one buffer, if they are known. A halo that exists but is
/// unknown has a key of its own.
pub(crate) fn add_names(interface: &Bound<'_, PyDict>, field: &Field) -> PyResult<()> {
    let py = interface.py();
    if let Some(dims) = &field.dims {
        interface.set_item("dims", PyTuple::new(py, dims.iter().map(Dim::to_string))?)?;
    }
    match &field.halo {
        Some(halo) => interface.set_item("halo", PyTuple::new(py, halo.iter().copied())?),
        None => interface.set_item(UNKNOWN_HALO, true),
    }
}

//! What can be told of an object without importing it: its doors, and the names of its axes.

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};

use super::dlpack::exchange;
use super::door::Door;
use super::producer::{Producer, Recognised};
use super::read::class_name;
use super::table;
use super::{buffer, class, gt4py, ndsl, xarray};
use crate::error::{Error, Failure, quoted_name};
use crate::field::Dims;

/// The refusal of an object that no door takes.
pub(super) fn no_protocol(obj: &Bound<'_, PyAny>) -> Error {
    if obj.get_type().module().is_ok_and(|module| module.to_string().starts_with("dask.")) {
        return Error::Type(
            "array: expected one in memory, got chunks of Dask, which are not computed yet; apply \
             a function to each chunk (xarray.apply_ufunc, map_overlap), or call compute()"
                .into(),
        );
    }
    if let Some(way_out) = of_many_arrays(obj) {
        let class = class_name(&obj.get_type());
        return Error::Type(format!("array: expected one array, got a {class}; {way_out}"));
    }
    let (what, name) = match obj.cast::<PyType>() {
        Ok(class) => ("the class", class_name(class)),
        Err(_) => ("an object of type", class_name(&obj.get_type())),
    };
    let attributes = table::all().flat_map(|door| door.attributes);
    let mut attributes: Vec<_> =
        attributes.filter(|name| name.starts_with("__")).copied().collect();
    attributes.sort_unstable();
    Error::Type(format!(
        "array: expected one that speaks the buffer protocol or one of {}, got {what} '{}'; make an \
         array of it first, for example with np.asarray(...) or .compute()",
        attributes.join(", "),
        name
    ))
}

/// The way out for an object that holds several arrays, or makes one in new memory.
fn of_many_arrays(obj: &Bound<'_, PyAny>) -> Option<String> {
    let module = obj.get_type().module().ok()?.to_string();
    match module.split('.').next()? {
        "pandas" => Some("pass x.to_numpy()".into()),
        "xarray" => {
            let mut names = obj.getattr_opt("data_vars").ok()??.try_iter().ok()?;
            let first = names.next()?.ok()?.to_string();
            Some(format!("pass one of its variables, for example x[{}]", quoted_name(&first)))
        }
        _ => None,
    }
}

/// The names of the axes of an object, as an import reads them; `None` if it has none. Touches no
/// memory.
///
/// # Errors
/// `TypeError` for something other than names, and what the object raises.
pub(crate) fn dims(obj: &Bound<'_, PyAny>) -> Result<Option<Dims>, Failure> {
    if let Some((storage, _)) = class::read(obj) {
        return Ok(storage.dims());
    }
    match Recognised::new(obj)?.producer {
        Producer::Xarray => return xarray::dims(obj).map(Some),
        Producer::Quantity => return ndsl::dims(obj).map(Some),
        _ => {}
    }
    match gt4py::dims(obj)? {
        Some(dims) => Ok(Some(dims)),
        None => gt4py::dims_of_interface(obj, gt4py::interface_names(obj.py())),
    }
}

/// Names of the doors that an object has, whether what is behind them can be used or not. A door
/// that raises when it is looked for is one.
pub(crate) fn door_names(obj: &Bound<'_, PyAny>) -> Vec<&'static str> {
    if class::read(obj).is_some_and(|(storage, _)| storage.device_as_is().is_some()) {
        return names_by_class(&obj.get_type()); // asking the object would bring buffers up to date
    }
    let producer = Recognised::new(obj).map_or(Producer::Other, |known| known.producer);
    let has = |door: &&Door| match door.name {
        "storage" => class::read(obj).is_some(),
        "xarray" => producer == Producer::Xarray,
        "ndarray" if producer == Producer::Xarray => false,
        "dlpack_c_exchange_api" => exchange::has_table(&obj.get_type()).unwrap_or(true),
        "buffer" => buffer::PyView::is_offered(obj),
        "dlpack" if obj.is_exact_instance_of::<PyCapsule>() => true,
        "arrow" if matches!(producer, Producer::Pandas | Producer::Xarray) => false,
        _ => door.attributes.iter().any(|name| obj.hasattr(name).unwrap_or(true)),
    };
    let arrow_first = producer == Producer::Arrow;
    let mut names: Vec<_> = table::all().filter(has).map(|door| door.name).collect();
    names.sort_by_key(|name| !(arrow_first && *name == "arrow"));
    names
}

/// As [`door_names`], as far as a class of storages tells.
fn names_by_class(class: &Bound<'_, PyType>) -> Vec<&'static str> {
    let has = |name: &str| class.hasattr(name).unwrap_or(false);
    let tells = |door: &&Door| match door.name {
        "storage" | "dlpack_c_exchange_api" => true,
        "buffer" => has("__array_interface__"), // both are of memory of the host
        _ => door.attributes.iter().any(|name| has(name)),
    };
    table::all().filter(tells).map(|door| door.name).collect()
}

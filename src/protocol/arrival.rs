//! The order of the doors, and what comes through them.

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::producer::{Producer, Recognised};
use super::{ImportRequest, array_interface, buffer, dlpack, gt4py, xarray};
use crate::error::{Error, Failure};
use crate::field::Dims;
use crate::layout::Extents;
use crate::managed::{Imported, Managed};

/// A foreign array, checked, with what the object says about its dimensions.
pub(crate) struct Arrival {
    pub(crate) managed: Managed,
    pub(crate) dims: Option<Dims>,
    /// Where the object says that its domain begins, in the order I, J, K, data dimensions.
    pub(crate) origin: Option<Extents>,
    /// Name of the door it came through.
    pub(crate) door: &'static str,
    /// What to call it in messages where it is read-only.
    pub(crate) kind: &'static str,
}

type Door = for<'py> fn(&Bound<'py, PyAny>, ImportRequest) -> Result<Option<Imported>, Failure>;

/// The plain doors, cheapest first. All of them share memory; none copies.
const DOORS: [(&str, Door); 3] = [
    ("buffer", buffer::import),
    ("dlpack", dlpack::import),
    ("array_interface", array_interface::import),
];

/// Takes an array from any object that speaks one of the protocols. Copies nothing; the producer
/// keeps its memory until the last view of it is dropped.
///
/// # Errors
/// `TypeError` where the object speaks none of them, `BufferError` or `ValueError` where what it
/// says cannot be used, and whatever the producer itself raises.
pub(crate) fn arrive(obj: &Bound<'_, PyAny>) -> Result<Arrival, Failure> {
    arrive_at(obj, 0)
}

/// A wrapper may hold an array that is one again, but not for ever.
const MAX_DEPTH: usize = 8;

fn arrive_at(obj: &Bound<'_, PyAny>, depth: usize) -> Result<Arrival, Failure> {
    if depth > MAX_DEPTH {
        return Err(Error::Type(
            "expected an array, got wrappers (.ndarray, .data) without an end".into(),
        )
        .into());
    }
    let Recognised { producer, exactly } = Recognised::of(obj)?;
    match producer {
        Producer::Xarray => {
            let held = xarray::unwrap(obj)?;
            let arrival = arrive_at(&held.data, depth + 1)?;
            if let Some(again) = held.again {
                let again = arrive_at(&again, depth + 1)?;
                if again.managed.address() != arrival.managed.address() {
                    return Err(xarray::not_loaded().into());
                }
            }
            Ok(Arrival { dims: Some(held.dims), origin: held.origin.or(arrival.origin), ..arrival })
        }
        _ if exactly => through_doors(obj, producer),
        _ => arrive_unknown(obj, producer, depth),
    }
}

/// An object whose class may have any attribute.
fn arrive_unknown(
    obj: &Bound<'_, PyAny>,
    producer: Producer,
    depth: usize,
) -> Result<Arrival, Failure> {
    if obj.is_instance_of::<PyType>() {
        return Err(no_protocol(obj).into()); // its attributes are for its instances
    }
    let (dims, origin) = (gt4py::dims(obj)?, gt4py::origin(obj)?);
    if let Some(inner) = gt4py::ndarray(obj)? {
        let arrival = arrive_at(&inner, depth + 1)?;
        let (dims, origin) = (dims.or(arrival.dims), origin.or(arrival.origin));
        return Ok(Arrival { dims, origin, door: "ndarray", ..arrival });
    }
    Ok(Arrival { dims, origin, ..through_doors(obj, producer)? })
}

fn through_doors(obj: &Bound<'_, PyAny>, producer: Producer) -> Result<Arrival, Failure> {
    producer.refuse_lazy(obj)?;
    let request = ImportRequest { immutable: producer.is_immutable() };
    for (door, import) in DOORS {
        if let Some(imported) = import(obj, request)? {
            let managed = imported.immutable(request.immutable).validate()?;
            let kind = producer.readonly_kind();
            return Ok(Arrival { managed, dims: None, origin: None, door, kind });
        }
    }
    Err(no_protocol(obj).into())
}

fn no_protocol(obj: &Bound<'_, PyAny>) -> Error {
    let (what, name) = match obj.cast::<PyType>() {
        Ok(class) => ("the class", class.name()),
        Err(_) => ("an object of type", obj.get_type().name()),
    };
    Error::Type(format!(
        "expected an array that speaks the buffer protocol, __dlpack__ or __array_interface__, got {what} \
         '{}'; make an array of it first, for example with np.asarray(...) or .compute()",
        name.map_or_else(|_| "?".into(), |name| name.to_string())
    ))
}

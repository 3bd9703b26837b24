//! The one way in: from any object to checked memory with what the object says of it.

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::arrival::Arrival;
use super::door::{Door, Memory, Offer, Request};
use super::gt4py;
use super::inspect::no_protocol;
use super::ndsl;
use super::nested::Nested;
use super::producer::{Producer, Recognised};
use super::table::doors;
use super::xarray;
use crate::error::{Failure, Result};
use crate::interpreter::{DropAttached, Inside};
use crate::managed::{Checked, Managed};

/// Imports any object that speaks one of the protocols. Copies nothing unless the request allows
/// it; the producer keeps its memory until the last view of it is dropped.
///
/// # Errors
/// `TypeError` if the object speaks none of them, `BufferError` or `ValueError` if its claims cannot
/// be used, `DeviceUnavailable` if the memory is not where the request needs it, `RecursionError`
/// for wrappers around each other without end, and whatever the producer itself raises.
pub(crate) fn import(obj: &Bound<'_, PyAny>, request: Request) -> Result<Arrival, Failure> {
    let _inside = Inside::enter(obj.py());
    let known = Recognised::new(obj)?;
    if known.is_array() {
        return try_doors(obj, request, known);
    }
    let _nested = Nested::enter()?;
    if !known.has_attributes() {
        return try_doors(obj, request, known);
    }
    if obj.is_instance_of::<PyType>() {
        return Err(no_protocol(obj).into()); // its attributes are for its instances
    }
    if known.producer == Producer::Quantity {
        let mut arrival = try_doors(obj, request, known)?;
        arrival.labels = ndsl::labels(obj, arrival.memory.layout().shape())?;
        return Ok(arrival);
    }
    let (dims, origin) = (gt4py::dims(obj)?, gt4py::origin(obj)?);
    let mut arrival = try_doors(obj, request, known)?;
    arrival.labels = arrival.labels.supplemented(dims, origin)?;
    Ok(arrival)
}

fn try_doors(
    obj: &Bound<'_, PyAny>,
    request: Request,
    known: Recognised,
) -> Result<Arrival, Failure> {
    let detached = known.producer.refuse_first(obj)?;
    let obj = detached.as_ref().unwrap_or(obj);
    for door in doors(request, known) {
        match (door.import)(obj, request, known) {
            Ok(Some(offer)) => return accept(obj, offer, request, door, known.producer),
            Ok(None) => {}
            Err(failure) => {
                let _inside = Inside::enter(obj.py());
                return Err(known.producer.explained(obj, failure));
            }
        }
    }
    Err(no_protocol(obj).into())
}

#[inline(always)]
fn accept<'py>(
    obj: &Bound<'py, PyAny>,
    offer: Offer<'py>,
    request: Request,
    door: &'static Door,
    producer: Producer,
) -> Result<Arrival, Failure> {
    let Offer { memory, labels, hooks } = offer;
    match memory {
        Memory::Claims(claims) => {
            let memory = trust(claims, request, producer)?;
            producer.refuse_lazy(obj, &memory)?;
            let (door, readonly_kind) = (Some(door.name), producer.readonly_kind(door.name));
            Ok(Arrival { memory, labels, hooks, door, readonly_kind, storage: None })
        }
        Memory::Storage { memory, storage, door } => {
            request.check_reach(memory.device())?;
            let readonly_kind = "a read-only storage";
            Ok(Arrival { memory, labels, hooks, door, readonly_kind, storage })
        }
        Memory::Wrapped(inner) => {
            let mut arrival = import(&inner, request)?;
            arrival.labels = arrival.labels.under(labels, false)?;
            if producer != Producer::Xarray {
                arrival.door = Some(door.name);
            }
            Ok(arrival)
        }
        Memory::Accessor { claims, inner, named } => {
            let memory = trust(claims, request, producer)?;
            // The buffer on the same side as it is: the hooks of both bring it up to date.
            let found = import(&inner, Request::computation(memory.device().target()));
            // A DataArray may get other data at any time, so the array in it keeps the memory.
            let memory = memory.along_with(DropAttached::new(inner.unbind()));
            let (door, readonly_kind) = (Some("gt_data_interface"), "a read-only array");
            let described = Arrival { memory, labels, hooks, door, readonly_kind, storage: None };
            xarray::supplement(described, found, named)
        }
    }
}

/// Locates the memory and takes ownership of it.
#[inline(always)]
fn trust(claims: Checked, request: Request, producer: Producer) -> Result<Managed> {
    let claims = if producer.is_immutable() { claims.into_immutable() } else { claims };
    let memory = claims.validate(request.trusts_device())?;
    request.check_reach(memory.device())?;
    Ok(memory)
}

//! Door: a storage of the package itself, which has more labels than any protocol can express.

use pyo3::prelude::*;

use super::class;
use super::door::{Answer, Memory, Offer, Price, Purpose, Reach, Request};
use super::hooks::Hooks;
use super::producer::{Producer, Recognised};
use crate::error::Result;
use crate::field::Labelled;
use crate::managed::Managed;
use crate::storage::Storage;

/// Takes the requested buffer of a storage. Copies only to bring it up to date; waits without the
/// GIL.
pub(super) fn import<'py>(
    obj: &Bound<'py, PyAny>,
    request: Request,
    known: Recognised,
) -> Answer<'py> {
    if known.producer != Producer::Storage {
        return Ok(None);
    }
    let Some((storage, door)) = class::read(obj) else { return Ok(None) };
    let memory = match storage.plain_host() {
        Some(host) => host.clone(),
        None => obj.py().detach(|| buffer(storage, request))?,
    };
    let labels = Labelled::AsField(storage.field());
    let whole = (request.purpose == Purpose::Values).then(|| Box::new(storage.clone()));
    let hooks = hooks(obj, storage, &memory, request)?;
    let memory = Memory::Storage { memory, storage: whole, door };
    Ok(Some(Offer { memory, labels, hooks }))
}

/// The buffer for a request: up to date, unless hooks will do that.
fn buffer(storage: &Storage, request: Request) -> Result<Managed> {
    let (host, device) = (storage.host_as_is(), storage.device_as_is());
    let memory = match (request.purpose, request.reach, request.price) {
        (Purpose::Computation { .. }, Reach::Host, _) => host.unwrap_or(storage.managed()),
        (Purpose::Computation { .. }, ..) => device.unwrap_or(storage.managed()),
        (_, Reach::Gpu(_), _) if device.is_some() => storage.device()?,
        (_, Reach::Host, Price::Copy) if host.is_none() => storage.newest()?,
        (_, Reach::Host, Price::Copy) => storage.host()?,
        (_, Reach::Host, _) => {
            let host = storage.host().map_err(|error| error.about("device"))?;
            return Ok(host.clone().for_host());
        }
        _ => storage.newest()?,
    };
    Ok(memory.clone())
}

/// The hooks that bring the buffer that a computation gets up to date, and mark it as written.
fn hooks(
    obj: &Bound<'_, PyAny>,
    storage: &Storage,
    buffer: &Managed,
    request: Request,
) -> PyResult<Hooks> {
    if request.purpose == Purpose::Values || storage.plain_host().is_some() {
        return Ok(Hooks::default());
    }
    let shared = storage.is_unified();
    let on_host = if shared { request.reach == Reach::Host } else { buffer.device().is_host() };
    let acquire = match request.purpose {
        _ if on_host => "device_to_host",
        Purpose::Computation { in_order: true } if !shared => "_host_to_device_in_order",
        _ => "host_to_device",
    };
    let touch = if on_host { "set_host_modified" } else { "set_device_modified" };
    Hooks::from_methods(obj, acquire, touch)
}

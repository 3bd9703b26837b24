//! What every door has in common: the request of a caller, and the offer of a door.
//!
//! `import(obj, request, known)` of a door answers `Ok(None)` if the object does not speak its
//! protocol, and `Err` if it does and failed; a producer's own exception passes unchanged.

use pyo3::prelude::*;

use super::hooks::Hooks;
use super::producer::Recognised;
use crate::cuda::is_available;
use crate::device::{Device, Target};
use crate::error::{Failure, Result};
use crate::field::Labelled;
use crate::managed::{Checked, Managed};
use crate::storage::Storage;

/// What a caller wants of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) reach: Reach,
    pub(crate) price: Price,
    pub(crate) purpose: Purpose,
}

/// Where the memory must be reachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Wherever it is; the host's buffer of an object with several.
    Anywhere,
    Host,
    /// On the GPU with this number, or any, if the object has memory there; else wherever it is.
    Gpu(Option<i32>),
}

/// What the producer may be asked to do so that the host reaches the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Price {
    /// Nothing: the memory is shared as it is.
    Share,
    /// A view for the host, without a copy.
    View,
    /// A copy on the host.
    Copy,
}

/// When the values are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Now: the buffer of a storage is up to date when the import returns.
    Values,
    /// In a computation to come: the hooks bring the buffer up to date just before. With `in_order`
    /// they enqueue a copy that is needed, and the host does not wait for it.
    Computation { in_order: bool },
}

impl Reach {
    fn of(target: Target) -> Self {
        match target {
            Target::Host => Self::Host,
            Target::Gpu(number) => Self::Gpu(number),
        }
    }
}

impl Request {
    /// Memory shared wherever it is.
    pub(crate) const SHARED: Self =
        Self { reach: Reach::Anywhere, price: Price::Share, purpose: Purpose::Values };
    /// Memory shared wherever it is, for a computation that gets a copy of it.
    pub(crate) const TO_BE_COPIED: Self =
        Self { purpose: Purpose::Computation { in_order: false }, ..Self::SHARED };
    /// Memory on the host, at the price of a copy.
    pub(crate) const COPIED_TO_HOST: Self =
        Self { reach: Reach::Host, price: Price::Copy, ..Self::SHARED };

    /// Memory shared where `target` reaches it, if any is given.
    pub(crate) fn shared(target: Option<Target>) -> Self {
        let price = if target == Some(Target::Host) { Price::View } else { Price::Share };
        Self { reach: target.map_or(Reach::Anywhere, Reach::of), price, ..Self::SHARED }
    }

    /// Memory for a computation on `target`.
    pub(crate) fn computation(target: Target) -> Self {
        let purpose = Purpose::Computation { in_order: false };
        Self { reach: Reach::of(target), price: Price::Share, purpose }
    }

    /// Memory for a computation on `target` that comes after the work in flight, and that the work
    /// after it waits for.
    pub(crate) fn computation_in_order(target: Target) -> Self {
        Self { purpose: Purpose::Computation { in_order: true }, ..Self::computation(target) }
    }

    /// True if memory of a device is as welcome as memory of the host: dlfield can copy it itself.
    pub(super) fn takes_device(self) -> bool {
        self.reach != Reach::Host || (self.price == Price::Copy && is_available())
    }

    /// Refuses memory that the host cannot reach, if only the host will do.
    ///
    /// # Errors
    /// [`Error::Device`](crate::error::Error::Device).
    pub(super) fn check_reach(self, device: Device) -> Result<()> {
        match (self.reach, self.price) {
            (Reach::Host, Price::Share | Price::View) => device.check_on_host(),
            _ => Ok(()),
        }
    }

    /// True if a claim about a device counts though no CUDA driver can confirm it: a computation on
    /// a GPU of another make.
    pub(super) fn trusts_device(self) -> bool {
        matches!((self.reach, self.purpose), (Reach::Gpu(_), Purpose::Computation { .. }))
            && !is_available()
    }
}

/// What a door found in an object.
pub(super) struct Offer<'py> {
    pub(super) memory: Memory<'py>,
    pub(super) labels: Labelled,
    pub(super) hooks: Hooks,
}

/// The memory of an offer.
pub(super) enum Memory<'py> {
    /// Checked claims; the driver has not yet confirmed the device.
    Claims(Checked),
    /// A buffer of a storage, with all of the storage if its values are needed.
    Storage { memory: Managed, storage: Option<Box<Storage>>, door: Option<&'static str> },
    /// The array that a wrapper holds.
    Wrapped(Bound<'py, PyAny>),
    /// The claims of a user's accessor about the array that a wrapper holds, and whether the
    /// accessor names the dimensions.
    Accessor { claims: Checked, inner: Bound<'py, PyAny>, named: bool },
}

impl From<Checked> for Offer<'_> {
    fn from(claims: Checked) -> Self {
        Self { memory: Memory::Claims(claims), labels: Labelled::Nothing, hooks: Hooks::default() }
    }
}

/// What a door answers: `Ok(None)` if the object does not speak its protocol.
pub(super) type Answer<'py> = Result<Option<Offer<'py>>, Failure>;

/// A protocol that objects may speak.
pub(super) struct Door {
    /// Its name in `explain` and in `Storage.door`.
    pub(super) name: &'static str,
    /// Attributes that an object which speaks it may have.
    pub(super) attributes: &'static [&'static str],
    pub(super) import: for<'py> fn(&Bound<'py, PyAny>, Request, Recognised) -> Answer<'py>,
}

//! The buffers of a storage, and how each is brought up to date.

use std::sync::Arc;

use super::Residence;
use crate::error::{Error, Result};
use crate::managed::Managed;
use crate::sync::{Mirrored, Newer, SyncState};

/// What a storage holds.
#[derive(Debug, Clone)]
pub(crate) enum Buffers {
    /// Memory of the host.
    Host(Managed),
    /// Memory of a device alone.
    Device(Managed),
    /// Memory on both sides, kept in step here.
    Mirrored(Mirrored),
    /// The host's buffer of a pair, as a storage of its own.
    HostOf(Mirrored),
    /// The device's buffer of a pair, as a storage of its own.
    DeviceOf(Mirrored),
    /// Memory that both sides reach, kept in step by CUDA.
    Unified(Managed),
}

impl Buffers {
    /// Shape, strides and type; of a pair those on the host.
    pub(crate) fn managed(&self) -> &Managed {
        match self {
            Self::Host(one) | Self::Device(one) | Self::Unified(one) => one,
            Self::Mirrored(pair) | Self::HostOf(pair) => pair.host(),
            Self::DeviceOf(pair) => pair.device(),
        }
    }

    /// The pair of which there is at least one side.
    pub(crate) fn pair(&self) -> Option<&Mirrored> {
        match self {
            Self::Mirrored(pair) | Self::HostOf(pair) | Self::DeviceOf(pair) => Some(pair),
            Self::Host(_) | Self::Device(_) | Self::Unified(_) => None,
        }
    }

    /// The buffer of the device as it is, where there is one.
    pub(crate) fn of_device(&self) -> Option<&Managed> {
        match self {
            Self::Host(_) | Self::HostOf(_) => None,
            Self::Device(one) | Self::Unified(one) => Some(one),
            Self::Mirrored(pair) | Self::DeviceOf(pair) => Some(pair.device()),
        }
    }

    /// The buffer of the host as it is, where there is one.
    pub(crate) fn of_host(&self) -> Option<&Managed> {
        match self {
            Self::Device(_) | Self::DeviceOf(_) => None,
            Self::Host(one) | Self::Unified(one) => Some(one),
            Self::Mirrored(pair) | Self::HostOf(pair) => Some(pair.host()),
        }
    }

    pub(super) fn on_host(&self) -> Result<Managed> {
        if let Self::Mirrored(pair) | Self::HostOf(pair) = self {
            pair.to_host(false)?;
        }
        let host = self.of_host().ok_or_else(|| {
            Error::Device(
                "host buffer: expected one, got a storage on a GPU alone; use copies, to_cupy(), or managed='gt4py'"
                    .into(),
            )
        })?;
        host.wait()?; // WAIT before the host reads or writes what a device may be working on
        host.check_there()?;
        Ok(host.clone())
    }

    pub(super) fn on_device(&self) -> Result<Managed> {
        if let Self::Mirrored(pair) | Self::DeviceOf(pair) = self {
            pair.to_device(false)?;
        }
        self.of_device().cloned().ok_or_else(|| {
            Error::Device(
                "device buffer: expected one, got a storage in host memory; make one with device='gpu'".into(),
            )
        })
    }

    /// The buffer of the side where a storage is wanted, up to date; the other where there is none.
    ///
    /// # Errors
    /// What CUDA refuses.
    #[cfg(feature = "python")]
    pub(crate) fn on_side(&self, wanted: Residence) -> Result<Managed> {
        match (wanted, self) {
            (_, Self::Host(one)) | (Residence::Host, Self::Device(one)) => Ok(one.clone()),
            (_, Self::HostOf(_)) | (Residence::Host, Self::Mirrored(_) | Self::Unified(_)) => {
                self.on_host()
            }
            _ => self.on_device(),
        }
    }

    /// One side of a pair, or all of it, which goes on sharing its state; `None` where there is no pair
    /// or none on that device.
    #[cfg(feature = "python")]
    pub(crate) fn seen_as(&self, wanted: Residence) -> Option<Self> {
        let pair = self.pair()?.clone();
        let here = wanted.ordinal().is_none_or(|ordinal| ordinal == pair.device().device().ordinal);
        match wanted {
            _ if !here => None,
            Residence::Host => Some(Self::HostOf(pair)),
            Residence::Device(_) => Some(Self::DeviceOf(pair)),
            Residence::Mirrored(_) => Some(Self::Mirrored(pair)),
            Residence::Unified(_) => None,
        }
    }

    #[cfg(feature = "python")]
    /// Whether the device's values count, where there are two buffers: those are newer or the same.
    pub(crate) fn is_on_device(&self) -> bool {
        match self {
            Self::Host(_) | Self::HostOf(_) => false,
            Self::Device(_) | Self::DeviceOf(_) | Self::Unified(_) => true,
            Self::Mirrored(pair) => pair.state().newer() != Newer::Host,
        }
    }

    pub(super) fn residence(&self) -> Residence {
        let ordinal = self.of_device().map_or(0, |one| one.device().ordinal);
        match self {
            Self::Host(_) | Self::HostOf(_) => Residence::Host,
            Self::Device(_) | Self::DeviceOf(_) => Residence::Device(ordinal),
            Self::Mirrored(_) => Residence::Mirrored(ordinal),
            Self::Unified(_) => Residence::Unified(ordinal),
        }
    }

    pub(super) fn set_newer(&self, newer: Newer) {
        if let Some(state) = self.sync_state() {
            state.set(newer);
        }
    }

    pub(super) fn sync_state(&self) -> Option<&Arc<SyncState>> {
        self.pair().map(Mirrored::state)
    }

    /// The same part of each.
    pub(super) fn map(&self, part: impl Fn(&Managed) -> Result<Managed>) -> Result<Self> {
        Ok(match self {
            Self::Host(one) => Self::Host(part(one)?),
            Self::Device(one) => Self::Device(part(one)?),
            Self::Unified(one) => Self::Unified(part(one)?),
            Self::Mirrored(pair) => Self::Mirrored(pair.map(part)?),
            Self::HostOf(pair) => Self::HostOf(pair.map(part)?),
            Self::DeviceOf(pair) => Self::DeviceOf(pair.map(part)?),
        })
    }
}

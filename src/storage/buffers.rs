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
    /// Memory that both sides reach, kept in step by CUDA.
    Unified(Managed),
}

impl Buffers {
    /// Shape, strides and type; of a pair those on the host.
    pub(crate) fn managed(&self) -> &Managed {
        match self {
            Self::Host(one) | Self::Device(one) | Self::Unified(one) => one,
            Self::Mirrored(pair) => pair.host(),
        }
    }

    /// The buffer of the device as it is, where there is one.
    pub(crate) fn of_device(&self) -> Option<&Managed> {
        match self {
            Self::Host(_) => None,
            Self::Device(one) | Self::Unified(one) => Some(one),
            Self::Mirrored(pair) => Some(pair.device()),
        }
    }

    /// The buffer of the host as it is, where there is one.
    pub(crate) fn of_host(&self) -> Option<&Managed> {
        match self {
            Self::Device(_) => None,
            Self::Host(one) | Self::Unified(one) => Some(one),
            Self::Mirrored(pair) => Some(pair.host()),
        }
    }

    pub(super) fn on_host(&self) -> Result<Managed> {
        if let Self::Mirrored(pair) = self {
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
        if let Self::Mirrored(pair) = self {
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
            (Residence::Host, _) => self.on_host(),
            _ => self.on_device(),
        }
    }

    #[cfg(feature = "python")]
    /// Whether the device's values count, where there are two buffers: those are newer or the same.
    pub(crate) fn is_on_device(&self) -> bool {
        match self {
            Self::Host(_) => false,
            Self::Device(_) | Self::Unified(_) => true,
            Self::Mirrored(pair) => pair.state().newer() != Newer::Host,
        }
    }

    pub(super) fn residence(&self) -> Residence {
        let ordinal = self.of_device().map_or(0, |one| one.device().ordinal);
        match self {
            Self::Host(_) => Residence::Host,
            Self::Device(_) => Residence::Device(ordinal),
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
        if let Self::Mirrored(pair) = self { Some(pair.state()) } else { None }
    }

    /// The same part of each.
    pub(super) fn map(&self, part: impl Fn(&Managed) -> Result<Managed>) -> Result<Self> {
        Ok(match self {
            Self::Host(one) => Self::Host(part(one)?),
            Self::Device(one) => Self::Device(part(one)?),
            Self::Unified(one) => Self::Unified(part(one)?),
            Self::Mirrored(pair) => Self::Mirrored(pair.map(part)?),
        })
    }
}

//! The buffers of a storage, and which of them there are.

use crate::cuda::device_count;
use crate::device::{Device, DeviceKind};
use crate::error::Result;
use crate::managed::Managed;
use crate::sync::Mirrored;

/// What keeps the buffers of a storage on a GPU in step with the host (GDP-3, `managed`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagedBy {
    /// Nothing: there is no buffer on the host (`None`).
    Nobody,
    /// dlfield, by copies between two buffers (`"gt4py"`).
    Dlfield,
    /// CUDA: one buffer that both sides reach (`"cuda"`).
    Cuda,
}

/// The buffers of a storage, and their device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Residence {
    /// One on the host.
    #[default]
    Host,
    /// One on the device.
    Device(i32),
    /// One on the host and one on the device.
    Mirrored(i32),
    /// One that both sides reach.
    Unified(i32),
}

impl Residence {
    /// The residence that a foreign buffer on a device gets by default.
    #[must_use]
    pub fn for_memory_on(device: Device) -> Self {
        match device.kind {
            DeviceKind::Cpu | DeviceKind::CudaHost | DeviceKind::RocmHost => Self::Host,
            DeviceKind::Cuda => Self::Mirrored(device.ordinal),
            DeviceKind::Rocm => Self::Device(device.ordinal),
            // Without a driver only the host reaches it.
            DeviceKind::CudaManaged if device_count().is_err() => Self::Host,
            DeviceKind::CudaManaged => Self::Unified(device.ordinal),
        }
    }

    /// The number of the device; `None` for the host alone.
    #[must_use]
    pub fn ordinal(self) -> Option<i32> {
        match self {
            Self::Host => None,
            Self::Device(ordinal) | Self::Mirrored(ordinal) | Self::Unified(ordinal) => {
                Some(ordinal)
            }
        }
    }

    /// What keeps it in step with the host; dlfield for a storage on the host alone.
    #[must_use]
    pub fn managed_by(self) -> ManagedBy {
        match self {
            Self::Host | Self::Mirrored(_) => ManagedBy::Dlfield,
            Self::Device(_) => ManagedBy::Nobody,
            Self::Unified(_) => ManagedBy::Cuda,
        }
    }

    /// The residence on a GPU that is kept in step like this.
    #[must_use]
    pub(crate) fn on_gpu(ordinal: i32, by: ManagedBy) -> Self {
        match by {
            ManagedBy::Nobody => Self::Device(ordinal),
            ManagedBy::Dlfield => Self::Mirrored(ordinal),
            ManagedBy::Cuda => Self::Unified(ordinal),
        }
    }
}

/// The buffers of a storage.
#[derive(Debug, Clone)]
pub(super) enum Buffers {
    /// Memory of the host.
    Host(Managed),
    /// Memory of a device alone.
    Device(Managed),
    /// Memory on both sides, kept in step by dlfield.
    Mirrored(Mirrored),
    /// The host's buffer of a pair, as a storage of its own.
    HostOf(Mirrored),
    /// The device's buffer of a pair, as a storage of its own.
    DeviceOf(Mirrored),
    /// Memory that both sides reach, kept in step by CUDA.
    Unified(Managed),
}

impl Buffers {
    /// Shape, strides and type; for a pair those of the host's buffer.
    pub(super) fn managed(&self) -> &Managed {
        match self {
            Self::Host(one) | Self::Device(one) | Self::Unified(one) => one,
            Self::Mirrored(pair) | Self::HostOf(pair) => pair.host(),
            Self::DeviceOf(pair) => pair.device(),
        }
    }

    /// The pair that the storage is, or is one side of.
    pub(super) fn pair(&self) -> Option<&Mirrored> {
        match self {
            Self::Mirrored(pair) | Self::HostOf(pair) | Self::DeviceOf(pair) => Some(pair),
            Self::Host(_) | Self::Device(_) | Self::Unified(_) => None,
        }
    }

    /// The buffer of the device as it is, if there is one.
    pub(super) fn device_as_is(&self) -> Option<&Managed> {
        match self {
            Self::Host(_) | Self::HostOf(_) => None,
            Self::Device(one) | Self::Unified(one) => Some(one),
            Self::Mirrored(pair) | Self::DeviceOf(pair) => Some(pair.device()),
        }
    }

    /// The buffer of the host as it is, if there is one.
    pub(super) fn host_as_is(&self) -> Option<&Managed> {
        match self {
            Self::Device(_) | Self::DeviceOf(_) => None,
            Self::Host(one) | Self::Unified(one) => Some(one),
            Self::Mirrored(pair) | Self::HostOf(pair) => Some(pair.host()),
        }
    }

    /// The same memory with another residence, without a copy; `None` if that is impossible. A side
    /// of a pair shares its state.
    pub(super) fn with_residence(&self, wanted: Residence) -> Option<Self> {
        if self.residence() == wanted {
            return Some(self.clone());
        }
        let pair = self.pair()?;
        let number = pair.device().device().ordinal;
        match wanted {
            Residence::Host => Some(Self::HostOf(pair.clone())),
            Residence::Device(on) if on == number => Some(Self::DeviceOf(pair.clone())),
            Residence::Mirrored(on) if on == number => Some(Self::Mirrored(pair.clone())),
            _ => None,
        }
    }

    pub(super) fn residence(&self) -> Residence {
        let ordinal = self.device_as_is().map_or(0, |one| one.device().ordinal);
        match self {
            Self::Host(_) | Self::HostOf(_) => Residence::Host,
            Self::Device(_) | Self::DeviceOf(_) => Residence::Device(ordinal),
            Self::Mirrored(_) => Residence::Mirrored(ordinal),
            Self::Unified(_) => Residence::Unified(ordinal),
        }
    }

    /// The same part of each buffer.
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

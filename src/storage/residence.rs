//! The buffers that a storage has.

use crate::cuda::device_count;
use crate::device::{Device, DeviceKind};

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

//! Where a storage is to have its buffers.

use super::Spec;
use crate::cuda::{check_ordinal, current_ordinal, device_count};
use crate::device::{Device, DeviceKind, Target};
use crate::error::Result;

/// Who keeps the buffers of a storage on a GPU in step with the host (GDP-3, `managed`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagedBy {
    /// Nobody: there is no buffer on the host (`None`).
    Nobody,
    /// dlfield, by copies between two buffers (`"gt4py"`).
    Dlfield,
    /// CUDA: one buffer that both sides reach (`"cuda"`).
    Cuda,
}

/// Which buffers there are, and on which device.
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
    /// What a foreign buffer on a device stands for, where nobody says more.
    #[must_use]
    pub fn of(device: Device) -> Self {
        match device.kind {
            DeviceKind::Cpu | DeviceKind::CudaHost | DeviceKind::RocmHost => Self::Host,
            DeviceKind::Cuda => Self::Mirrored(device.ordinal),
            DeviceKind::Rocm => Self::Device(device.ordinal),
            // Without a driver there is only the host to reach it.
            DeviceKind::CudaManaged if device_count().is_err() => Self::Host,
            DeviceKind::CudaManaged => Self::Unified(device.ordinal),
        }
    }

    /// The number of the device; `None`: the host alone.
    #[must_use]
    pub fn ordinal(self) -> Option<i32> {
        match self {
            Self::Host => None,
            Self::Device(ordinal) | Self::Mirrored(ordinal) | Self::Unified(ordinal) => {
                Some(ordinal)
            }
        }
    }

    #[cfg(feature = "python")]
    /// The buffer of the device alone, where there is one.
    #[must_use]
    pub(crate) fn alone(self) -> Self {
        self.ordinal().map_or(Self::Host, Self::Device)
    }

    fn managed_by(self) -> ManagedBy {
        match self {
            Self::Host | Self::Mirrored(_) => ManagedBy::Dlfield,
            Self::Device(_) => ManagedBy::Nobody,
            Self::Unified(_) => ManagedBy::Cuda,
        }
    }
}

impl Spec {
    /// Where the storage is to be: as is said, as the preset has it, where the data is, on the host.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where there is no such device.
    pub(crate) fn residence(&self) -> Result<Residence> {
        let target = match (self.device, self.preset) {
            (Some(device), _) => device,
            (None, Some(preset)) if preset.gpu => Target::Gpu(None),
            (None, _) => match self.near.ordinal() {
                Some(ordinal) => Target::Gpu(Some(ordinal)),
                None => Target::Host,
            },
        };
        let Target::Gpu(number) = target else {
            return Ok(Residence::Host);
        };
        let ordinal = match number.or(self.near.ordinal()) {
            Some(ordinal) => ordinal,
            None => current_ordinal()?,
        };
        check_ordinal(ordinal)?;
        Ok(match self.managed.unwrap_or(self.near.managed_by()) {
            ManagedBy::Nobody => Residence::Device(ordinal),
            ManagedBy::Dlfield => Residence::Mirrored(ordinal),
            ManagedBy::Cuda => Residence::Unified(ordinal),
        })
    }
}

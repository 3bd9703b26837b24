//! Words: devices of memory, as DLPack's pairs of device type and device id.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use std::fmt;

use crate::error::{Error, Result};

/// A kind of memory that dlfield knows, by its DLPack code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// Ordinary host memory (code 1).
    Cpu,
    /// Memory of a CUDA device (code 2).
    Cuda,
    /// Page-locked host memory of CUDA (code 3), usable as host memory.
    CudaHost,
    /// Memory of a ROCm device (code 10).
    Rocm,
    /// Page-locked host memory of ROCm (code 11), usable as host memory.
    RocmHost,
    /// CUDA managed memory (code 13), reachable from host and device.
    CudaManaged,
}

/// Kind of memory and ordinal of the device it belongs to (0 for host memory).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device {
    /// The kind of memory.
    pub kind: DeviceKind,
    /// The producer's number of the device.
    pub ordinal: i32,
}

/// Place of a computation, which determines the memory that it can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Target {
    /// On the host.
    #[default]
    Host,
    /// On the GPU with this number, or on any.
    Gpu(Option<i32>),
}

impl Target {
    /// The number of a GPU; `None` for the host and for any GPU.
    pub(crate) fn ordinal(self) -> Option<i32> {
        match self {
            Self::Host => None,
            Self::Gpu(number) => number,
        }
    }

    /// True if a computation there can read and write memory of `device`.
    #[must_use]
    pub fn reaches(self, device: Device) -> bool {
        match self {
            Self::Host => device.is_host(),
            Self::Gpu(number) => {
                let here = number.is_none_or(|number| number == device.ordinal);
                device.kind == DeviceKind::CudaManaged || (!device.is_host() && here)
            }
        }
    }
}

impl Device {
    /// The place of computations on memory of this device.
    pub(crate) fn target(self) -> Target {
        if self.is_host() { Target::Host } else { Target::Gpu(Some(self.ordinal)) }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("the host"),
            Self::Gpu(None) => f.write_str("a GPU"),
            Self::Gpu(Some(number)) => write!(f, "GPU {number}"),
        }
    }
}

/// DLPack's code and the name of each kind, in the order of its variants (tested).
const CODES: [(i64, DeviceKind, &str); 6] = [
    (1, DeviceKind::Cpu, "cpu"),
    (2, DeviceKind::Cuda, "cuda"),
    (3, DeviceKind::CudaHost, "cuda_host"),
    (10, DeviceKind::Rocm, "rocm"),
    (11, DeviceKind::RocmHost, "rocm_host"),
    (13, DeviceKind::CudaManaged, "cuda_managed"),
];

impl DeviceKind {
    #[expect(clippy::indexing_slicing, reason = "the table has a row for every variant (tested)")]
    fn entry(self) -> &'static (i64, Self, &'static str) {
        &CODES[self as usize]
    }
}

impl Device {
    /// Ordinary host memory.
    pub const CPU: Self = Self { kind: DeviceKind::Cpu, ordinal: 0 };

    /// Looks up DLPack's pair. Host memory has no ordinal: any value reads as 0.
    ///
    /// # Errors
    /// [`Error::Buffer`] for a device type that dlfield cannot reach, or a negative ordinal.
    pub fn from_dlpack(code: i64, ordinal: i32) -> Result<Self> {
        let kind = CODES.iter().find(|entry| entry.0 == code).map(|entry| entry.1);
        match kind.map(|kind| Self { kind, ordinal }) {
            Some(device) if device.is_host() => Ok(Self { ordinal: 0, ..device }),
            Some(device) if ordinal >= 0 => Ok(device),
            _ => Err(Error::Buffer(format!(
                "device: expected host memory (DLPack codes 1, 3, 11, 13) or a CUDA or ROCm \
                 device (2, 10), got code {code} with id {ordinal}; copy the array to the host \
                 first"
            ))),
        }
    }

    /// The DLPack device type.
    #[must_use]
    pub fn code(self) -> i64 {
        self.kind.entry().0
    }

    /// The device that exports announce: CPU for page-locked memory, CUDA for managed memory. Some
    /// consumers, torch among them, refuse the finer codes.
    #[must_use]
    pub fn announced(self) -> Self {
        match self.kind {
            DeviceKind::CudaManaged => Self { kind: DeviceKind::Cuda, ..self },
            _ if self.is_host() => Self::CPU,
            _ => self,
        }
    }

    /// Refuses memory that the host cannot reach.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn check_on_host(self) -> Result<()> {
        if self.is_host() {
            return Ok(());
        }
        Err(Error::Device(format!(
            "device: expected memory that the host can reach, got {self}; copy the array to the \
             host first"
        )))
    }

    /// True if the host can read and write the memory.
    #[must_use]
    pub fn is_host(self) -> bool {
        !matches!(self.kind, DeviceKind::Cuda | DeviceKind::Rocm)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.entry().2)?;
        let numbered = !self.is_host() || self.kind == DeviceKind::CudaManaged;
        if numbered { write!(f, ":{}", self.ordinal) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_read_back_as_its_device() {
        for (code, kind, _) in CODES {
            assert_eq!(kind.entry().1, kind, "entries are in the order of the variants");
            assert_eq!(Device::from_dlpack(code, 0).unwrap().code(), code);
        }
    }

    #[test]
    fn a_cpu_ordinal_reads_as_zero_and_a_negative_cuda_ordinal_is_refused() {
        assert_eq!(Device::from_dlpack(1, 7), Ok(Device::CPU));
        assert!(Device::from_dlpack(2, -1).is_err());
        assert_eq!(Device::from_dlpack(2, 3).unwrap().to_string(), "cuda:3");
    }

    #[test]
    fn unknown_device_codes_are_refused_by_number() {
        for code in [0, 5, 6, 8, 19, 77, -1] {
            let error = Device::from_dlpack(code, 0).unwrap_err().to_string();
            assert!(error.contains(&code.to_string()), "{error}");
        }
    }
}

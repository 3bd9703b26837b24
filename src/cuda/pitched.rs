//! Copies of planes of rows, as the driver describes them (`CUDA_MEMCPY3D` in cuda.h).
#![forbid(unsafe_code)]

/// Source or target of a copy. What describes CUDA's arrays stays 0.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PitchedSide {
    position: [usize; 4],
    memory_type: u32,
    host: u64,
    device: u64,
    array: [usize; 2],
    pitch: usize,
    rows: usize,
}

impl PitchedSide {
    /// Memory of the host or a device, with `pitch` bytes from one row to the next, and `rows` rows
    /// from one plane to the next, gaps between planes included.
    pub(crate) fn new(address: u64, on_host: bool, pitch: usize, rows: usize) -> Self {
        let memory_type = if on_host { 1 } else { 2 };
        Self { memory_type, host: address, device: address, pitch, rows, ..Self::default() }
    }
}

/// A copy of `depth` planes of `height` rows of `width` bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pitched {
    pub(crate) source: PitchedSide,
    pub(crate) target: PitchedSide,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use std::mem::offset_of;

    use cudarc::driver::sys::CUDA_MEMCPY3D;

    use super::*;

    #[test]
    fn the_fields_lie_where_the_driver_reads_them() {
        assert_eq!(size_of::<Pitched>(), size_of::<CUDA_MEMCPY3D>());
        assert_eq!(
            [
                offset_of!(Pitched, source.memory_type),
                offset_of!(Pitched, source.host),
                offset_of!(Pitched, source.device),
                offset_of!(Pitched, source.pitch),
                offset_of!(Pitched, source.rows),
                offset_of!(Pitched, target.memory_type),
                offset_of!(Pitched, target.rows),
                offset_of!(Pitched, width),
                offset_of!(Pitched, depth),
            ],
            [
                offset_of!(CUDA_MEMCPY3D, srcMemoryType),
                offset_of!(CUDA_MEMCPY3D, srcHost),
                offset_of!(CUDA_MEMCPY3D, srcDevice),
                offset_of!(CUDA_MEMCPY3D, srcPitch),
                offset_of!(CUDA_MEMCPY3D, srcHeight),
                offset_of!(CUDA_MEMCPY3D, dstMemoryType),
                offset_of!(CUDA_MEMCPY3D, dstHeight),
                offset_of!(CUDA_MEMCPY3D, WidthInBytes),
                offset_of!(CUDA_MEMCPY3D, Depth),
            ]
        );
    }
}

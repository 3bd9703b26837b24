//! Copies in two and three dimensions, with the documented rules for pitches and heights.

use super::device::MAX_PITCH;
use crate::ffi::{Handle, In};
use crate::region::Extent;
use crate::run::answer;
use crate::status::{Outcome, Status, refuse};
use crate::submit::{Place, Request, Role, When, copy};

/// One side of `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Side2D {
    x: usize,
    y: usize,
    memory_type: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Copy2D {
    from: Side2D,
    to: Side2D,
    width: usize,
    height: usize,
}

/// One side of `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Side3D {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    memory_type: u32,
    host: u64,
    device: u64,
    array: u64,
    reserved: u64,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Copy3D {
    from: Side3D,
    to: Side3D,
    width: usize,
    height: usize,
    depth: usize,
}

impl From<Side2D> for Side3D {
    fn from(side: Side2D) -> Self {
        let Side2D { x, y, memory_type, host, device, array, pitch } = side;
        Self {
            x,
            y,
            z: 0,
            level: 0,
            memory_type,
            host,
            device,
            array,
            reserved: 0,
            pitch,
            height: 0,
        }
    }
}

impl From<Copy2D> for Copy3D {
    fn from(copy: Copy2D) -> Self {
        let Copy2D { from, to, width, height } = copy;
        Self { from: from.into(), to: to.into(), width, height, depth: 1 }
    }
}

impl Side3D {
    fn place(self, extent: Extent) -> Outcome<Place> {
        let (role, base) = match self.memory_type {
            1 => (Role::Host, self.host),
            2 => (Role::Device, self.device),
            4 => (Role::Unified, self.device),
            3 => return Err(Status::NOT_SUPPORTED), // arrays
            _ => return Err(Status::INVALID_VALUE),
        };
        if self.level != 0 || self.reserved != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let row = self.row(extent)?;
        let plane = self.rows(extent)?.checked_mul(row).ok_or(Status::INVALID_VALUE)?;
        let first = self.first(row, plane).and_then(|first| u64::try_from(first).ok());
        let address = first.and_then(|first| base.checked_add(first));
        let address = address.ok_or(Status::INVALID_VALUE)?;
        Ok(Place { role, address, row, plane })
    }

    /// Offset of the first byte; `None` if it overflows.
    fn first(&self, row: usize, plane: usize) -> Option<usize> {
        let above = self.y.checked_mul(row)?.checked_add(self.x)?;
        self.z.checked_mul(plane)?.checked_add(above)
    }

    /// The pitch, which is optional only for a single row.
    fn row(&self, extent: Extent) -> Outcome<usize> {
        let least = extent.width.checked_add(self.x).ok_or(Status::INVALID_VALUE)?;
        match self.pitch {
            0 if extent.height == 1 && extent.depth == 1 && self.y == 0 && self.z == 0 => Ok(least),
            pitch if (least..=MAX_PITCH).contains(&pitch) => Ok(pitch),
            pitch => {
                let expected = format!("pitch: expected {least} to {MAX_PITCH}, got {pitch}");
                refuse(Status::INVALID_VALUE, &expected)
            }
        }
    }

    /// The height of a plane, which is optional only for a single plane.
    fn rows(&self, extent: Extent) -> Outcome<usize> {
        let least = extent.height.checked_add(self.y).ok_or(Status::INVALID_VALUE)?;
        match self.height {
            0 if extent.depth == 1 && self.z == 0 => Ok(least),
            height if height >= least => Ok(height),
            height => {
                let expected = format!("height: expected at least {least}, got {height}");
                refuse(Status::INVALID_VALUE, &expected)
            }
        }
    }
}

fn run(given: Copy3D, when: When) -> Outcome {
    let Copy3D { width, height, depth, .. } = given;
    let extent = Extent { width, height, depth };
    if extent.is_empty() {
        return Ok(());
    }
    let (to, from) = (given.to.place(extent)?, given.from.place(extent)?);
    copy(Request { to, from, extent }, when)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpy2D_v2(given: In<Copy2D>) -> Status {
    answer(|| run(given.get()?.into(), When::Now))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpy2DUnaligned_v2(given: In<Copy2D>) -> Status {
    cuMemcpy2D_v2(given)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpy2DAsync_v2(given: In<Copy2D>, stream: Handle) -> Status {
    answer(|| run(given.get()?.into(), When::In(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpy3D_v2(given: In<Copy3D>) -> Status {
    answer(|| run(given.get()?, When::Now))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpy3DAsync_v2(given: In<Copy3D>, stream: Handle) -> Status {
    answer(|| run(given.get()?, When::In(stream)))
}

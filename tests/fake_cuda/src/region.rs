//! The effect of copies and fills on bytes, when they run. Nothing is allocated for the caller or
//! freed: a copy owns only the snapshot of its source. Sizes are in bytes. `submit` makes the
//! regions.

use std::ptr;

use crate::arena::pointer;
use crate::memory::Memory;

/// Start of one side of a copy.
#[derive(Debug)]
pub(crate) enum Side {
    /// In a block, whose bounds and life are checked when the work runs.
    Block(u64),
    /// In pageable memory of the caller, accessed before the call returns.
    Host(u64),
    /// A snapshot of a pageable source at the call.
    Snapshot(Vec<u8>),
}

/// One side, with the distances between rows and between planes.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) side: Side,
    pub(crate) row: usize,
    pub(crate) plane: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

impl Extent {
    pub(crate) fn linear(width: usize) -> Self {
        Self { width, height: 1, depth: 1 }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    /// True if it exceeds any memory: a negative number, or a mistake.
    pub(crate) fn is_absurd(self) -> bool {
        let bytes = self.width.checked_mul(self.height).and_then(|n| n.checked_mul(self.depth));
        bytes.is_none_or(|bytes| isize::try_from(bytes).is_err())
    }

    /// Offsets of the first bytes of all rows.
    fn rows(self, row: usize, plane: usize) -> impl Iterator<Item = usize> {
        let planes = 0..self.depth;
        planes.flat_map(move |z| (0..self.height).map(move |y| z * plane + y * row))
    }
}

impl Region {
    /// Bytes from the first to the last one. An overflow exceeds any block.
    fn span(&self, extent: Extent) -> usize {
        let planes = (extent.depth - 1).saturating_mul(self.plane);
        let rows = (extent.height - 1).saturating_mul(self.row);
        planes.saturating_add(rows).saturating_add(extent.width)
    }

    /// Pointer to the first byte, if one block contains the whole span.
    fn start(&self, memory: &Memory, extent: Extent) -> Result<*mut u8, String> {
        match &self.side {
            Side::Block(address) => memory.reach(*address, self.span(extent)),
            Side::Host(address) => Ok(pointer(*address)),
            Side::Snapshot(bytes) => Ok(bytes.as_ptr().cast_mut()),
        }
    }

    /// Takes a snapshot of a pageable source. The caller's memory is not needed afterwards.
    pub(crate) fn snapshot(self, extent: Extent) -> Self {
        let Side::Host(address) = self.side else {
            return self;
        };
        let Extent { width, height, depth } = extent;
        let mut bytes = Vec::with_capacity(width * height * depth);
        for offset in extent.rows(self.row, self.plane) {
            let from = pointer(address).wrapping_add(offset);
            // SAFETY: the caller of the copy keeps its source readable during the call.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(from, width) });
        }
        Self { side: Side::Snapshot(bytes), row: width, plane: width * height }
    }
}

#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) to: Region,
    pub(crate) from: Region,
    pub(crate) extent: Extent,
}

impl Copy {
    /// Copies now. The error names the invalid side.
    pub(crate) fn perform(&self, memory: &Memory) -> Result<(), String> {
        let Self { to, from, extent } = self;
        let target = to.start(memory, *extent).map_err(|why| format!("copy, target: {why}"))?;
        let source = from.start(memory, *extent).map_err(|why| format!("copy, source: {why}"))?;
        let pairs = extent.rows(to.row, to.plane).zip(extent.rows(from.row, from.plane));
        for (there, here) in pairs {
            let (there, here) = (target.wrapping_add(there), source.wrapping_add(here));
            // SAFETY: `start` found both spans in their blocks, or the caller provides pageable
            // ones.
            unsafe { ptr::copy(here, there, extent.width) };
        }
        Ok(())
    }
}

/// A fill. The `width` of the extent counts items.
#[derive(Debug)]
pub(crate) struct Fill {
    pub(crate) to: Region,
    pub(crate) extent: Extent,
    /// One item, of 1, 2 or 4 bytes.
    pub(crate) item: Vec<u8>,
}

impl Fill {
    /// Fills now. The error names the fault of the target.
    pub(crate) fn perform(&self, memory: &Memory) -> Result<(), String> {
        let width = self.item.len().saturating_mul(self.extent.width);
        let extent = Extent { width, ..self.extent };
        let target = self.to.start(memory, extent).map_err(|why| format!("fill: {why}"))?;
        // The size is valid only from here on.
        let line = self.item.repeat(self.extent.width);
        for offset in extent.rows(self.to.row, self.to.plane) {
            let there = target.wrapping_add(offset);
            // SAFETY: `start` found the span in its block, and `line` is local.
            unsafe { ptr::copy_nonoverlapping(line.as_ptr(), there, line.len()) };
        }
        Ok(())
    }
}

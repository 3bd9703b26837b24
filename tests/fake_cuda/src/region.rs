//! What copies and fills do to bytes, once it is their turn. Neither allocates for the caller nor
//! frees: a copy owns only the snapshot of its source. Sizes are in bytes; `submit` made the regions.

use std::ptr;

use crate::arena::pointer;
use crate::memory::Memory;

/// Where one side of a copy begins.
#[derive(Debug)]
pub(crate) enum Side {
    /// In a block, whose bounds and life are checked when the work runs.
    Block(u64),
    /// In pageable memory of the caller's, touched before the call returns.
    Host(u64),
    /// A pageable source as it was at the call.
    Snapshot(Vec<u8>),
}

/// One side, with the distances from row to row and from plane to plane.
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

    /// Is it more than any memory has? Then it is a negative number, or a mistake.
    pub(crate) fn is_absurd(self) -> bool {
        let bytes = self.width.checked_mul(self.height).and_then(|n| n.checked_mul(self.depth));
        bytes.is_none_or(|bytes| isize::try_from(bytes).is_err())
    }

    /// Offsets of the first bytes of the rows.
    fn rows(self, row: usize, plane: usize) -> impl Iterator<Item = usize> {
        let planes = 0..self.depth;
        planes.flat_map(move |z| (0..self.height).map(move |y| z * plane + y * row))
    }
}

impl Region {
    /// From the first byte to the last one; too many to count is more than any block has.
    fn span(&self, extent: Extent) -> usize {
        let planes = (extent.depth - 1).saturating_mul(self.plane);
        let rows = (extent.height - 1).saturating_mul(self.row);
        planes.saturating_add(rows).saturating_add(extent.width)
    }

    /// The pointer to the first byte, after the whole span was found inside one block.
    fn start(&self, memory: &Memory, extent: Extent) -> Result<*mut u8, String> {
        match &self.side {
            Side::Block(address) => memory.reach(*address, self.span(extent)),
            Side::Host(address) => Ok(pointer(*address)),
            Side::Snapshot(bytes) => Ok(bytes.as_ptr().cast_mut()),
        }
    }

    /// Takes the bytes of a pageable source now. The caller's memory is not needed afterwards.
    pub(crate) fn snapshot(self, extent: Extent) -> Self {
        let Side::Host(address) = self.side else {
            return self;
        };
        let Extent { width, height, depth } = extent;
        let mut bytes = Vec::with_capacity(width * height * depth);
        for offset in extent.rows(self.row, self.plane) {
            let from = pointer(address).wrapping_add(offset);
            // SAFETY: the caller of the copy promised its source readable during the call.
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
    /// Copies now; the error says which side is not what it was said to be.
    pub(crate) fn perform(&self, memory: &Memory) -> Result<(), String> {
        let Self { to, from, extent } = self;
        let target = to.start(memory, *extent).map_err(|why| format!("copy, target: {why}"))?;
        let source = from.start(memory, *extent).map_err(|why| format!("copy, source: {why}"))?;
        let pairs = extent.rows(to.row, to.plane).zip(extent.rows(from.row, from.plane));
        for (there, here) in pairs {
            let (there, here) = (target.wrapping_add(there), source.wrapping_add(here));
            // SAFETY: `start` found both spans in their blocks, or the caller promised pageable ones.
            unsafe { ptr::copy(here, there, extent.width) };
        }
        Ok(())
    }
}

/// `width` of the extent is in items here.
#[derive(Debug)]
pub(crate) struct Fill {
    pub(crate) to: Region,
    pub(crate) extent: Extent,
    /// One item: 1, 2 or 4 bytes.
    pub(crate) item: Vec<u8>,
}

impl Fill {
    /// Fills now; the error says why the target is none.
    pub(crate) fn perform(&self, memory: &Memory) -> Result<(), String> {
        let width = self.item.len().saturating_mul(self.extent.width);
        let extent = Extent { width, ..self.extent };
        let target = self.to.start(memory, extent).map_err(|why| format!("fill: {why}"))?;
        // Only now is it known to be a size that exists.
        let line = self.item.repeat(self.extent.width);
        for offset in extent.rows(self.to.row, self.to.plane) {
            let there = target.wrapping_add(offset);
            // SAFETY: `start` found the span in its block, and `line` is our own.
            unsafe { ptr::copy_nonoverlapping(line.as_ptr(), there, line.len()) };
        }
        Ok(())
    }
}

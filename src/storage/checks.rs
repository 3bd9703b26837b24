//! Whether memory that exists already is as somebody wants it.

use crate::alloc::check_ranks;
use crate::error::{Error, Result};
use crate::field::Field;
use crate::layout::falls_along;
use crate::managed::Managed;

/// The strides, largest first by the wanted ranks, must not grow.
pub(super) fn check_order(host: &Managed, ranks: &[i64]) -> Result<()> {
    let layout = host.layout();
    check_ranks(ranks, layout.ndim())?;
    if falls_along(ranks, layout.axes()) {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "layout: expected memory ordered as {ranks:?}, got strides of {:?} elements, which is {:?}; \
         leave the layout open, or pass copy=True to storage()",
        layout.strides(),
        layout.ranks(&[]).as_slice()
    )))
}

pub(super) fn check_alignment(host: &Managed, field: &Field) -> Result<()> {
    let (layout, alignment) = (host.layout(), field.alignment);
    if alignment <= 1 || layout.size() == 0 {
        return Ok(());
    }
    let boundary = i128::try_from(alignment).unwrap_or(i128::MAX);
    let strides = layout.byte_strides();
    let index = field.aligned_index(layout.ndim());
    let first = strides
        .iter()
        .zip(&index)
        .fold(host.address() as i128, |at, (&stride, &i)| at + i128::from(stride) * i128::from(i));
    let inner = layout.axes().filter(|axis| axis.0 > 1).map(|axis| axis.1.unsigned_abs()).min();
    let rows = layout.axes().zip(strides).all(|((extent, stride), &bytes)| {
        extent <= 1 || Some(stride.unsigned_abs()) == inner || i128::from(bytes) % boundary == 0
    });
    if first % boundary == 0 && rows {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "alignment_size: expected the element at {:?} of every row on a boundary of {alignment} \
         bytes, got memory at {first:#x} with strides of {:?} bytes; leave the alignment open, or \
         pass copy=True to storage()",
        index.as_slice(),
        strides
    )))
}

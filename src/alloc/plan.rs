//! Plans an allocation: its bytes, strides, and the position of the first element.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Extents, Layout, MAX_NDIM, strides_by_rank};

/// Alignment in bytes of every host allocation: a cache line, which JAX also needs to take an array
/// without copying it.
pub(crate) const HOST_ALIGNMENT: usize = 64;

/// The geometry of an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Bytes from the start of the allocation to the end of the last element.
    pub(crate) bytes: usize,
    /// Alignment of the start, in bytes.
    pub(crate) alignment: usize,
    /// Bytes from the start to the first element.
    pub(crate) offset: usize,
    pub(crate) layout: Layout,
    pub(crate) dtype: DType,
}

impl Plan {
    /// Plans memory for `shape` in C order, without gaps or padded rows.
    ///
    /// # Errors
    /// [`Error::Argument`] for negative extents, too many dimensions, and more bytes than an address
    /// can count.
    pub(crate) fn compact(shape: &[i64], dtype: DType) -> Result<Self> {
        let refusal = |_| match shape.iter().enumerate().find(|(_, extent)| **extent < 0) {
            Some((axis, extent)) => Error::Argument(format!(
                "shape: expected extents of at least 0, got {extent} on axis {axis} of {shape:?}"
            )),
            None => too_large(shape, dtype),
        };
        let layout = Layout::compact(shape.into(), dtype.itemsize()).map_err(refusal)?;
        let bytes = layout.span().len();
        Ok(Self { bytes, alignment: HOST_ALIGNMENT, offset: 0, layout, dtype })
    }

    /// Plans memory of the same shape and order as `layout`, without gaps or padded rows.
    ///
    /// # Errors
    /// As [`plan`].
    pub(crate) fn like(layout: &Layout, dtype: DType) -> Result<Self> {
        plan(layout.shape(), dtype, &layout.ranks(&[]), 1, &[])
    }
}

/// Plans memory for `shape` in which dimension `d` has rank `ranks[d]` (0 = largest stride).
///
/// An `alignment` (bytes) above 1 pads rows along the contiguous dimension, so that the element at
/// `aligned_index` of every row lies on that boundary (GDP-3, `alignment_size`). Otherwise nothing
/// is padded and the first element lies at the start.
///
/// # Errors
/// [`Error::Argument`] for ranks that are not a permutation, an alignment that is neither a
/// multiple nor a divisor of the item size, or more bytes than an address can count.
pub(crate) fn plan(
    shape: &[i64],
    dtype: DType,
    ranks: &[i64],
    alignment: usize,
    aligned_index: &[i64],
) -> Result<Plan> {
    let compact = Plan::compact(shape, dtype)?;
    if alignment <= 1 && ranks.iter().copied().eq((0_i64..).take(shape.len())) {
        return Ok(compact);
    }
    check_ranks(ranks, shape.len())?;
    let quantum = items_per_boundary(alignment, dtype)?;
    let too_large = || too_large(shape, dtype);
    let inner = (0..shape.len()).max_by_key(|&axis| ranks.get(axis));
    let padded = pad(shape, inner, quantum).ok_or_else(too_large)?;
    let strides = strides_by_rank(&padded, ranks).ok_or_else(too_large)?;
    let layout = Layout::new(shape.into(), strides, dtype.itemsize()).map_err(|_| too_large())?;
    let at = inner.and_then(|axis| aligned_index.get(axis)).copied().unwrap_or(0);
    let lead = 0_i64.saturating_sub(at).checked_rem_euclid(quantum).unwrap_or(0);
    let offset = usize::try_from(lead).unwrap_or(0).saturating_mul(dtype.itemsize());
    let bytes =
        offset.checked_add(layout.span().len()).filter(|&bytes| isize::try_from(bytes).is_ok());
    let bytes = bytes.ok_or_else(too_large)?;
    let alignment = common_multiple(alignment.max(1), HOST_ALIGNMENT).ok_or_else(too_large)?;
    Ok(Plan { bytes, alignment, offset, layout, dtype })
}

fn too_large(shape: &[i64], dtype: DType) -> Error {
    Error::Argument(format!(
        "shape {shape:?} of {dtype}: expected at most {MAX_NDIM} dimensions and {} bytes with \
         padding, got more",
        isize::MAX
    ))
}

/// Refuses ranks that are not a permutation.
///
/// # Errors
/// [`Error::Argument`] unless `ranks` is a permutation of `0..ndim`.
pub(crate) fn check_ranks(ranks: &[i64], ndim: usize) -> Result<()> {
    let complete = ranks.len() == ndim && (0_i64..).take(ndim).all(|rank| ranks.contains(&rank));
    if complete {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "layout: expected a permutation of {:?} (0 = largest stride), got {ranks:?}",
        (0..ndim).collect::<Vec<_>>()
    )))
}

/// Number of items from one boundary to the next; 1 if every item lies on a boundary.
fn items_per_boundary(alignment: usize, dtype: DType) -> Result<i64> {
    let item = dtype.itemsize();
    let items = match alignment {
        0 | 1 => Some(1),
        _ if item.is_multiple_of(alignment) => Some(1),
        _ if alignment.is_multiple_of(item) => alignment.checked_div(item),
        _ => None,
    };
    items.and_then(|items| i64::try_from(items).ok()).ok_or_else(|| {
        Error::Argument(format!(
            "alignment_size: expected a multiple or a divisor of the item size {item} of {dtype} \
             (in bytes), got {alignment}"
        ))
    })
}

/// Rounds the extent of the contiguous dimension `inner` up to a multiple of `quantum`.
fn pad(shape: &[i64], inner: Option<usize>, quantum: i64) -> Option<Extents> {
    let mut padded = Extents::from_slice(shape);
    if let Some(extent) = inner.and_then(|axis| padded.get_mut(axis)) {
        let whole = extent.checked_add(quantum.checked_sub(1)?)?.checked_div(quantum)?;
        *extent = whole.checked_mul(quantum)?;
    }
    Some(padded)
}

/// The least common multiple; `None` if it does not fit, and for two zeros.
pub(crate) fn common_multiple(a: usize, b: usize) -> Option<usize> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x.checked_rem(y)?);
    }
    a.checked_div(x)?.checked_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    const F64: DType = DType::Float64;

    #[test]
    fn sizes_beyond_four_gibibytes_do_not_overflow() {
        let plan = plan(&[1024, 1024, 1024], F64, &[0, 1, 2], 1, &[0, 0, 0]).unwrap();
        assert_eq!((plan.bytes, plan.offset), (8 << 30, 0));
    }

    #[test]
    fn bytes_beyond_the_address_space_are_refused() {
        for shape in
            [&[1 << 60][..], &[i64::MAX], &[1 << 32, 1 << 32], &[0, 1 << 62, 1 << 62], &[-1]]
        {
            assert!(matches!(
                plan(shape, F64, &[0, 1, 2][..shape.len()], 1, &[]),
                Err(Error::Argument(_))
            ));
        }
    }

    #[test]
    fn the_aligned_element_of_every_row_lies_on_a_boundary() {
        for (ranks, index) in
            [([0, 1, 2], [3, 3, 1]), ([2, 1, 0], [3, 3, 1]), ([1, 2, 0], [0, 5, 0])]
        {
            for alignment in [16, 32, 64, 256] {
                let plan = plan(&[7, 9, 5], F64, &ranks, alignment, &index).unwrap();
                let inner = ranks.iter().position(|&rank| rank == 2).unwrap();
                let strides = plan.layout.strides();
                let first = plan.offset + 8 * usize::try_from(index[inner]).unwrap();
                assert!(
                    first.is_multiple_of(alignment) && plan.alignment.is_multiple_of(alignment)
                );
                for axis in (0..3).filter(|&axis| axis != inner) {
                    assert!(usize::try_from(8 * strides[axis]).unwrap().is_multiple_of(alignment));
                }
            }
        }
    }

    #[test]
    fn without_alignment_nothing_is_padded() {
        let plan = plan(&[7, 9, 5], F64, &[2, 1, 0], 1, &[3, 3, 0]).unwrap();
        assert_eq!((plan.bytes, plan.offset, plan.alignment), (7 * 9 * 5 * 8, 0, 64));
        assert!(plan.layout.is_f_contiguous());
    }

    #[test]
    fn c_order_is_planned_as_with_an_alignment_that_every_item_meets() {
        for shape in [&[7, 9, 5][..], &[0, 5], &[], &[1 << 61], &[3, -1]] {
            let ranks: Extents = (0..).take(shape.len()).collect();
            assert_eq!(plan(shape, F64, &ranks, 1, &[]), plan(shape, F64, &ranks, 8, &[]));
        }
    }

    #[test]
    fn an_alignment_that_items_cannot_meet_is_refused() {
        assert!(plan(&[8], F64, &[0], 12, &[0]).unwrap_err().to_string().contains("got 12"));
        assert_eq!(plan(&[8], F64, &[0], 24, &[0]).unwrap().alignment, 192);
        assert!(plan(&[8, 8], F64, &[0, 0], 1, &[]).is_err(), "ranks must be a permutation");
    }

    #[test]
    fn empty_and_zero_dimensional_shapes_have_a_plan() {
        assert_eq!(plan(&[], F64, &[], 64, &[]).unwrap().bytes, 8);
        assert_eq!(plan(&[0, 5], F64, &[0, 1], 64, &[0, 0]).unwrap().bytes, 0);
    }
}

//! [`Field`]: names, halo and alignment of a storage, and their checks.

use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::dims::{Dim, Dims, show_dims};
use crate::error::{Error, Result};
use crate::layout::{Extents, MAX_NDIM};

/// Number of points outside the domain at the lower and the upper end of one dimension.
pub(crate) type HaloWidth = (i64, i64);

/// Number of points outside the domain at the lower and the upper end of each dimension.
pub type Halo = SmallVec<[HaloWidth; 4]>;

/// Dimensions, halo and alignment of a storage, in the storage's own order of axes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Field {
    /// Names of the dimensions. `None` means unnamed.
    pub dims: Option<Dims>,
    /// Halo. `None` means unknown, which differs from a halo of zeros.
    pub halo: Option<Halo>,
    /// Index of the aligned element of each row. `None` means the lower halo.
    pub aligned_index: Option<Extents>,
    /// Requested alignment of that element, in bytes. 0 and 1 request nothing.
    pub alignment: usize,
    /// First point that a stencil computes by default (GT4Py's default origin), in GT4Py's order
    /// of dimensions, see [`Field::axes_in_order`]. Below 0 where the memory begins behind that
    /// point, as of a field of gt4py.next that begins above 0. `None` means unset.
    pub origin: Option<Extents>,
    /// Requested rank of each dimension, unless strides contradict it (see
    /// [`crate::Layout::ranks`]): strides do not tell the order of dimensions of extent 1, nor of a
    /// field without elements. `None` means unset.
    pub order: Option<Extents>,
}

/// The field of an array without names and halo, shared by all such arrays of a number of
/// dimensions.
pub(crate) fn unlabelled(ndim: usize) -> Arc<Field> {
    static SHARED: [OnceLock<Arc<Field>>; 7] = [const { OnceLock::new() }; 7];
    let new = || {
        let (halo, order) = (Halo::from_elem((0, 0), ndim), (0_i64..).take(ndim).collect());
        Arc::new(Field { halo: Some(halo), order: Some(order), alignment: 1, ..Field::default() })
    };
    match SHARED.get(ndim) {
        Some(shared) => Arc::clone(shared.get_or_init(new)),
        None => new(),
    }
}

impl Field {
    /// True if nothing is known or requested: what [`unlabelled`] describes.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { dims, halo, aligned_index, alignment, origin, order } = self;
        let labels = dims.is_some() || halo.is_some() || origin.is_some();
        !labels && aligned_index.is_none() && order.is_none() && *alignment <= 1
    }

    /// True for a field that is equal to the [`unlabelled`] one.
    pub(crate) fn is_unlabelled(&self) -> bool {
        self.order.as_ref().is_some_and(|order| *self == *unlabelled(order.len()))
    }

    /// True for a field with the same names, halo and origin.
    pub(crate) fn has_labels_of(&self, other: &Self) -> bool {
        let (same_dims, same_halo) = (self.dims == other.dims, self.halo == other.halo);
        same_dims && same_halo && self.origin == other.origin
    }

    /// Checks every part against the shape.
    ///
    /// # Errors
    /// [`Error::Argument`] for repeated dims, and for lengths, halo widths or indices that do not
    /// fit `shape`.
    pub fn check(&self, shape: &[i64]) -> Result<()> {
        if let Some(dims) = &self.dims {
            check_length("dims", dims.len(), shape)?;
            check_distinct(dims)?;
        }
        if let Some(halo) = &self.halo {
            check_length("halo", halo.len(), shape)?;
            check_halo(halo, shape)?;
            check_data_dims(halo, self.dims.as_deref().unwrap_or_default())?;
        }
        if let Some(index) = &self.aligned_index {
            check_length("aligned_index", index.len(), shape)?;
            check_index(index, shape)?;
        }
        if let Some(origin) = &self.origin {
            check_length("default_origin", origin.len(), shape)?;
            check_origin(origin, &self.axes_in_order(shape.len()), shape)?;
        }
        Ok(())
    }

    /// Pins the aligned element to its current index, so that it no longer follows the halo.
    #[must_use]
    pub fn with_fixed_index(mut self, shape: &[i64]) -> Self {
        if self.alignment > 1 {
            let index = self.aligned_index(shape.len());
            match check_index(&index, shape) {
                Ok(()) => self.aligned_index = Some(index),
                // The lower halo fills the extent, so that there is no element to align.
                Err(_) => self.alignment = 1,
            }
        }
        self
    }

    /// Axes in GT4Py's order for origins: I, J, K, then data dimensions by number. If any axis is
    /// unnamed or has a name that GT4Py does not know, axes keep their order.
    #[must_use]
    pub fn axes_in_order(&self, ndim: usize) -> SmallVec<[usize; 4]> {
        let mut axes: SmallVec<[usize; 4]> = (0..ndim).collect();
        if let Some(dims) = self.dims.as_deref().filter(|dims| dims.iter().all(Dim::is_gt4py)) {
            axes.sort_by_key(|&axis| dims.get(axis).map(Dim::rank));
        }
        axes
    }

    /// Returns the origin in the order of the axes.
    pub(super) fn origin_by_axis(&self, ndim: usize) -> Option<Extents> {
        let mut by_axis = Extents::from_elem(0, ndim);
        for (&at, &axis) in self.origin.as_ref()?.iter().zip(&self.axes_in_order(ndim)) {
            *by_axis.get_mut(axis)? = at;
        }
        Some(by_axis)
    }

    /// Puts an origin in the order of the axes into the order in which an origin counts.
    pub(super) fn origin_in_order(&self, by_axis: &[i64]) -> Extents {
        let axes = self.axes_in_order(by_axis.len());
        axes.iter().filter_map(|&axis| by_axis.get(axis).copied()).collect()
    }

    /// Index of the aligned element: the requested one, else the lower halo, else 0.
    #[must_use]
    pub fn aligned_index(&self, ndim: usize) -> Extents {
        match (&self.aligned_index, &self.halo) {
            (Some(index), _) => index.clone(),
            (None, Some(halo)) => halo.iter().map(|width| width.0).collect(),
            (None, None) => Extents::from_elem(0, ndim),
        }
    }
}

fn check_length(what: &str, length: usize, shape: &[i64]) -> Result<()> {
    if length == shape.len() {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "{what}: expected one entry for each of the {} dimensions of shape {shape:?}, got {}",
        shape.len(),
        if length > MAX_NDIM { format!("more than {MAX_NDIM}") } else { length.to_string() }
    )))
}

fn check_distinct(dims: &[Dim]) -> Result<()> {
    let mut rest = dims;
    while let Some((first, tail)) = rest.split_first() {
        if tail.contains(first) {
            return Err(Error::Argument(format!(
                "dims: expected distinct names, got '{first}' twice in {}",
                show_dims(dims)
            )));
        }
        rest = tail;
    }
    Ok(())
}

fn check_halo(halo: &[HaloWidth], shape: &[i64]) -> Result<()> {
    for (axis, (&(low, high), &extent)) in halo.iter().zip(shape).enumerate() {
        let fits = low >= 0 && high >= 0 && low.checked_add(high).is_some_and(|sum| sum <= extent);
        if !fits {
            return Err(Error::Argument(format!(
                "halo: expected widths of at least 0 that fit in extent {extent}, got ({low}, \
                 {high}) on axis {axis}"
            )));
        }
    }
    Ok(())
}

/// Refuses a halo on data dimensions: they are not directions of the grid.
fn check_data_dims(halo: &[HaloWidth], dims: &[Dim]) -> Result<()> {
    for (dim, width) in dims.iter().zip(halo) {
        if matches!(dim, Dim::Data(_)) && *width != (0, 0) {
            return Err(Error::Argument(format!(
                "halo: expected 0 for the data dimension '{dim}', got {width:?}"
            )));
        }
    }
    Ok(())
}

/// Refuses an origin beyond the end of the memory. A negative one is legal: the memory begins later.
pub(super) fn check_origin(origin: &[i64], axes: &[usize], shape: &[i64]) -> Result<()> {
    for (&at, &axis) in origin.iter().zip(axes) {
        let extent = shape.get(axis).copied().unwrap_or(0);
        if at > extent {
            return Err(Error::Argument(format!(
                "default_origin: expected at most {extent} for axis {axis} of shape {shape:?}, got \
                 {at}"
            )));
        }
    }
    Ok(())
}

pub(super) fn check_index(index: &[i64], shape: &[i64]) -> Result<()> {
    for (axis, (&at, &extent)) in index.iter().zip(shape).enumerate() {
        if at < 0 || at >= extent.max(1) {
            return Err(Error::Argument(format!(
                "aligned_index: expected an index inside shape {shape:?}, got {at} on axis {axis}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    #[test]
    fn a_field_with_any_label_is_not_unlabelled() {
        let plain = Field::clone(&unlabelled(2));
        assert!(plain.is_unlabelled() && Field::clone(&unlabelled(9)).is_unlabelled());
        assert!(!Field { alignment: 16, ..plain.clone() }.is_unlabelled());
        assert!(!Field { order: Some(smallvec![1, 0]), ..plain.clone() }.is_unlabelled());
        assert!(!Field { halo: None, ..plain }.is_unlabelled());
    }

    #[test]
    fn a_repeated_name_is_refused() {
        let field = Field { dims: Some(smallvec![Dim::I, Dim::I]), ..Field::default() };
        assert!(field.check(&[2, 2]).unwrap_err().to_string().contains("'I' twice"));
    }

    #[test]
    fn a_halo_may_fill_the_extent_but_not_exceed_it() {
        let with = |width| Field { halo: Some(smallvec![width]), ..Field::default() };
        assert!(with((2, 2)).check(&[4]).is_ok());
        for width in [(3, 2), (-1, 0), (i64::MAX, 1)] {
            assert!(with(width).check(&[4]).is_err(), "{width:?}");
        }
    }

    #[test]
    fn an_origin_counts_in_gt4py_s_order() {
        let origin = Some(smallvec![1, 2, 3]);
        let field =
            Field { dims: Some(smallvec![Dim::K, Dim::I, Dim::J]), origin, ..Field::default() };
        assert_eq!(field.axes_in_order(3).as_slice(), [1, 2, 0]);
        assert!(field.check(&[3, 1, 2]).is_ok() && field.check(&[2, 1, 2]).is_err());
    }

    #[test]
    fn the_aligned_element_is_the_first_of_the_domain_by_default() {
        let mut field = Field { halo: Some(smallvec![(3, 1), (0, 0)]), ..Field::default() };
        assert_eq!(field.aligned_index(2).as_slice(), [3, 0]);
        field.aligned_index = Some(smallvec![1, 1]);
        assert_eq!(field.aligned_index(2).as_slice(), [1, 1]);
        assert!(field.check(&[8, 1]).is_err(), "index 1 lies outside extent 1");
    }
}

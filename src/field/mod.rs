//! Words: what a field knows about itself besides its memory: names of dimensions, halo, and the
//! alignment it was asked to have.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

#[cfg(any(feature = "arrow", feature = "python"))]
mod said;
mod view;

use std::fmt;
use std::sync::Arc;
#[cfg(feature = "python")]
use std::sync::OnceLock;

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::layout::Extents;

#[cfg(any(feature = "arrow", feature = "python"))]
pub(crate) use said::Said;
#[cfg(feature = "python")]
pub(crate) use said::SaidHalo;
pub use view::{Axes, align_by_name};
#[cfg(feature = "python")]
pub(crate) use view::{Order, align_key, are_unrelated};

/// The meaning of one dimension.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Dim {
    /// First horizontal dimension of GT4Py's cartesian grid.
    I,
    /// Second horizontal dimension.
    J,
    /// Vertical dimension.
    K,
    /// Data dimension with its number, spelled in decimal ("0", "1", ...).
    Data(u32),
    /// Any other name, such as "Cell" or "lon".
    Named(Arc<str>),
}

/// Names of the dimensions in the order of the axes.
pub type Dims = SmallVec<[Dim; 4]>;

/// Points at the lower and at the upper end of one dimension that lie outside the domain.
pub type HaloWidth = (i64, i64);

/// One [`HaloWidth`] for each dimension.
pub type Halo = SmallVec<[HaloWidth; 4]>;

impl Dim {
    /// Reads a name. Every text is a name: what is not I, J, K or a decimal is `Named`.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let decimal = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        match (name, name.parse::<u32>()) {
            ("I", _) => Self::I,
            ("J", _) => Self::J,
            ("K", _) => Self::K,
            (_, Ok(number)) if decimal && (name == "0" || !name.starts_with('0')) => {
                Self::Data(number)
            }
            _ => Self::Named(name.into()),
        }
    }

    /// What stands for the name of an axis that has none, as xarray has it: `dim_0` for the first, and so on.
    #[must_use]
    pub fn unnamed(axis: usize) -> Self {
        Self::Named(format!("dim_{axis}").into())
    }

    /// Whether this stands for the name of an axis that has none.
    #[must_use]
    pub fn is_unnamed(&self, axis: usize) -> bool {
        *self == Self::unnamed(axis)
    }

    /// Place in GT4Py's order of dimensions.
    fn rank(&self) -> (u8, u32) {
        match self {
            Self::I => (0, 0),
            Self::J => (1, 0),
            Self::K => (2, 0),
            Self::Data(number) => (3, *number),
            Self::Named(_) => (4, 0),
        }
    }

    /// Whether GT4Py's cartesian stencils know the name.
    #[must_use]
    pub fn is_gt4py(&self) -> bool {
        !matches!(self, Self::Named(_))
    }
}

impl From<&str> for Dim {
    fn from(name: &str) -> Self {
        Self::from_name(name)
    }
}

impl From<&Self> for Dim {
    fn from(dim: &Self) -> Self {
        dim.clone()
    }
}

impl PartialEq<str> for Dim {
    fn eq(&self, name: &str) -> bool {
        *self == Self::from_name(name)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::I => f.write_str("I"),
            Self::J => f.write_str("J"),
            Self::K => f.write_str("K"),
            Self::Data(number) => write!(f, "{number}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// Names for further data dimensions, numbered after those there are.
#[cfg(feature = "python")]
pub(crate) fn further_data_dims(dims: &[Dim]) -> impl Iterator<Item = Dim> + use<> {
    let numbers = dims.iter().filter_map(|dim| match dim {
        Dim::Data(number) => Some(number.saturating_add(1)),
        _ => None,
    });
    (numbers.max().unwrap_or(0)..).map(Dim::Data)
}

/// The names as a Python tuple prints them, for messages.
#[must_use]
pub(crate) fn show_dims(dims: &[Dim]) -> String {
    let quoted: Vec<String> = dims.iter().map(|dim| format!("'{dim}'")).collect();
    match quoted.as_slice() {
        [one] => format!("({one},)"),
        all => format!("({})", all.join(", ")),
    }
}

/// Dimensions, halo and alignment of a storage. All of it is about the storage's own axis order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Field {
    /// `None`: nobody said.
    pub dims: Option<Dims>,
    /// `None`: unknown, which is not the same as no halo.
    pub halo: Option<Halo>,
    /// Index of the element that rows are aligned at; `None` stands for the lower halo.
    pub aligned_index: Option<Extents>,
    /// Requested alignment of that element, in bytes; 0 and 1 ask for nothing.
    pub alignment: usize,
    /// Where a stencil begins unless it is told otherwise (GT4Py's default origin), in GT4Py's
    /// order of dimensions, see [`Field::axes_in_order`]. `None`: nobody said.
    pub origin: Option<Extents>,
    /// Rank of each dimension as it was asked for. Only their order counts, where strides do not
    /// contradict it (see [`crate::Layout::ranks`]). `None`: nobody said.
    pub order: Option<Extents>,
}

/// Fields that many arrays share, one for each number of dimensions.
#[cfg(feature = "python")]
type Shared = [OnceLock<Arc<Field>>; 7];

/// Of arrays that say nothing of themselves: no names, no halo.
#[cfg(feature = "python")]
pub(crate) fn plain(ndim: usize) -> Arc<Field> {
    static PLAIN: Shared = [const { OnceLock::new() }; 7];
    shared(&PLAIN, ndim, |_| Field::default())
}

/// Of fresh memory about which nothing was wished for.
#[cfg(feature = "python")]
pub(crate) fn in_c_order(ndim: usize) -> Arc<Field> {
    static FRESH: Shared = [const { OnceLock::new() }; 7];
    shared(&FRESH, ndim, |ndim| {
        let order = Some((0_i64..).take(ndim).collect());
        Field { order, alignment: 1, ..Field::default() }
    })
}

#[cfg(feature = "python")]
fn shared(known: &'static Shared, ndim: usize, field: fn(usize) -> Field) -> Arc<Field> {
    let new = || {
        let halo = Some(Halo::from_elem((0, 0), ndim));
        Arc::new(Field { halo, ..field(ndim) })
    };
    match known.get(ndim) {
        Some(known) => Arc::clone(known.get_or_init(new)),
        None => new(),
    }
}

impl Field {
    /// Checks the parts against the shape.
    ///
    /// # Errors
    /// [`Error::Argument`] for dims that repeat, or parts whose length, halo widths or index do
    /// not fit `shape`.
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
            check_order_is_known(self.dims.as_deref().unwrap_or_default())?;
            check_origin(origin, &self.axes_in_order(shape.len()), shape)?;
        }
        Ok(())
    }

    /// The same with the aligned element where it is now, whatever becomes of the halo.
    #[must_use]
    pub fn with_fixed_index(mut self, shape: &[i64]) -> Self {
        if self.alignment > 1 {
            let last = |extent: i64| extent.saturating_sub(1).max(0);
            let index = self.aligned_index(shape.len());
            let inside = index.iter().zip(shape).map(|(&at, &extent)| at.clamp(0, last(extent)));
            self.aligned_index = Some(inside.collect());
        }
        self
    }

    /// The axes in the order I, J, K, data dimensions by number, in which GT4Py counts origins.
    /// Names that it does not know, and axes without a name, stay where they are.
    #[must_use]
    pub fn axes_in_order(&self, ndim: usize) -> SmallVec<[usize; 4]> {
        let mut axes: SmallVec<[usize; 4]> = (0..ndim).collect();
        if let Some(dims) = self.dims.as_deref().filter(|dims| dims.iter().all(Dim::is_gt4py)) {
            axes.sort_by_key(|&axis| dims.get(axis).map(Dim::rank));
        }
        axes
    }

    /// Index of the element that is aligned: the one asked for, else the lower halo, else 0.
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
        "{what}: expected one entry for each of the {} dimensions of shape {shape:?}, got {length}",
        shape.len()
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
                "halo: expected widths of at least 0 that fit in extent {extent}, got ({low}, {high}) \
                 on axis {axis}"
            )));
        }
    }
    Ok(())
}

/// A data dimension is no direction of the grid: nothing lies around it.
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

/// An origin counts along I, J, K: other names have no place in that order.
fn check_order_is_known(dims: &[Dim]) -> Result<()> {
    if dims.iter().all(Dim::is_gt4py) {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "default_origin: expected dims among I, J, K and decimals, whose order it follows, got {}; pass origin= to \
         the stencil instead",
        show_dims(dims)
    )))
}

fn check_origin(origin: &[i64], axes: &[usize], shape: &[i64]) -> Result<()> {
    for (&at, &axis) in origin.iter().zip(axes) {
        let extent = shape.get(axis).copied().unwrap_or(0);
        if !(0..=extent).contains(&at) {
            return Err(Error::Argument(format!(
                "default_origin: expected points inside shape {shape:?}, in the order I, J, K, got {at} for \
                 axis {axis}"
            )));
        }
    }
    Ok(())
}

fn check_index(index: &[i64], shape: &[i64]) -> Result<()> {
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
    fn a_name_leads_back_to_its_text() {
        for name in ["I", "J", "K", "0", "12", "Cell", "i", "", "007", "4294967296", "1.5"] {
            assert_eq!(Dim::from_name(name).to_string(), name);
        }
        assert_eq!(Dim::from_name("12"), Dim::Data(12));
        assert!(!Dim::from_name("007").is_gt4py() && !Dim::from_name("i").is_gt4py());
    }

    #[test]
    fn a_name_given_twice_is_refused() {
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
    fn an_origin_counts_in_the_order_of_gt4py() {
        let origin = Some(smallvec![1, 2, 3]);
        let field =
            Field { dims: Some(smallvec![Dim::K, Dim::I, Dim::J]), origin, ..Field::default() };
        assert_eq!(field.axes_in_order(3).as_slice(), [1, 2, 0]);
        assert!(field.check(&[3, 1, 2]).is_ok() && field.check(&[2, 1, 2]).is_err());
    }

    #[test]
    fn the_aligned_element_is_the_first_of_the_domain_unless_said_otherwise() {
        let mut field = Field { halo: Some(smallvec![(3, 1), (0, 0)]), ..Field::default() };
        assert_eq!(field.aligned_index(2).as_slice(), [3, 0]);
        field.aligned_index = Some(smallvec![1, 1]);
        assert_eq!(field.aligned_index(2).as_slice(), [1, 1]);
        assert!(field.check(&[8, 1]).is_err(), "index 1 lies outside extent 1");
    }
}

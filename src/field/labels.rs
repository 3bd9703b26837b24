//! Labels of a producer's array, before it becomes a field.

use std::sync::Arc;

use super::description::{Field, Halo};
use super::dims::{Dim, Dims, show_dims};
use crate::error::{Error, Result};
use crate::layout::Extents;

/// Names, halo and origin of an array, in the array's own order of axes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Labels {
    /// Names of the dimensions. `None` means unnamed.
    pub(crate) dims: Option<Dims>,
    pub(crate) halo: HaloLabel,
    /// First point of the domain, in the order I, J, K, data dimensions. `None` means unset.
    pub(crate) origin: Option<Extents>,
}

/// The labels of what comes in, in a form that is cheap to move: none, those of a storage (its field,
/// which is shared), or labels that an array states.
#[derive(Debug, Clone, Default)]
pub(crate) enum Labelled {
    #[default]
    Nothing,
    AsField(Arc<Field>),
    Stated(Box<Labels>),
}

/// Halo as a producer states it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum HaloLabel {
    /// Not stated: most libraries know no halos, so the whole array is domain.
    #[default]
    Nothing,
    /// Lost: the array is a part of one with a halo.
    Unknown,
    /// Stated, possibly all zeros.
    Known(Halo),
}

impl HaloLabel {
    /// Returns the more informative of two labels, preferring this one.
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, other) => other,
            (Self::Unknown, Self::Known(halo)) => Self::Known(halo),
            (known, _) => known,
        }
    }

    /// Converts to the halo of a [`Field`] with `ndim` dimensions.
    pub(crate) fn along(self, ndim: usize) -> Option<Halo> {
        match self {
            Self::Nothing => Some(Halo::from_elem((0, 0), ndim)),
            Self::Unknown => None,
            Self::Known(halo) => Some(halo),
        }
    }
}

/// Converts the halo of a field, in which `None` means unknown.
impl From<Option<Halo>> for HaloLabel {
    fn from(halo: Option<Halo>) -> Self {
        halo.map_or(Self::Unknown, Self::Known)
    }
}

impl Labelled {
    /// Names of the axes, if they have any.
    pub(crate) fn dims(&self) -> Option<&Dims> {
        match self {
            Self::Nothing => None,
            Self::AsField(field) => field.dims.as_ref(),
            Self::Stated(labels) => labels.dims.as_ref(),
        }
    }

    /// The same with the names and the origin that the object states in attributes of its own.
    ///
    /// # Errors
    /// As [`Labels::supplement`].
    pub(crate) fn supplemented(self, dims: Option<Dims>, origin: Option<Extents>) -> Result<Self> {
        if dims.is_none() && origin.is_none() {
            return Ok(self);
        }
        let mut labels = self.into_labels();
        labels.supplement(dims, origin)?;
        Ok(labels.into())
    }

    /// The same with these names.
    pub(crate) fn with_dims(self, dims: Option<Dims>) -> Self {
        Labels { dims, ..self.into_labels() }.into()
    }

    /// Labels of their own, to be changed.
    pub(crate) fn into_labels(self) -> Labels {
        match self {
            Self::Nothing => Labels::default(),
            Self::AsField(field) => Labels {
                dims: field.dims.clone(),
                halo: field.halo.clone().into(),
                origin: field.origin.clone(),
            },
            Self::Stated(labels) => *labels,
        }
    }

    /// The labels of an array inside a wrapper. The wrapper's names count, unless the array
    /// contradicts them; an origin counts along the names it came with. With `named` the wrapper's
    /// names need not agree.
    ///
    /// # Errors
    /// [`Error::Argument`] if both name the axes for GT4Py, and differently.
    pub(crate) fn under(self, wrapper: Self, named: bool) -> Result<Self> {
        match (self, wrapper) {
            (inner, Self::Nothing) => Ok(inner),
            (Self::Nothing, outer) => Ok(outer),
            (inner, outer) => Ok(inner.into_labels().under(outer.into_labels(), named)?.into()),
        }
    }
}

impl From<Labels> for Labelled {
    fn from(labels: Labels) -> Self {
        Self::Stated(Box::new(labels))
    }
}

impl Labels {
    /// Adds names and origin that the object states in attributes of its own.
    ///
    /// # Errors
    /// [`Error::Argument`] if it also states other names.
    pub(crate) fn supplement(&mut self, dims: Option<Dims>, origin: Option<Extents>) -> Result<()> {
        if let (Some(own), Some(found)) = (&dims, &self.dims)
            && own != found
        {
            return Err(Error::Argument(format!(
                "dims: expected one answer, got {} from __gt_dims__ and {} from the memory it holds",
                show_dims(own),
                show_dims(found)
            )));
        }
        self.dims = dims.or(self.dims.take());
        self.origin = origin.or(self.origin.take());
        Ok(())
    }

    fn under(self, outer: Self, named: bool) -> Result<Self> {
        let inner_origin = match (&outer.dims, &self.dims) {
            (Some(own), Some(inner)) if own != inner => {
                if !named {
                    check_names(own, inner)?;
                }
                None
            }
            // Without names it is in the order of the axes.
            (Some(own), None) => {
                let field = Field { dims: Some(own.clone()), ..Field::default() };
                self.origin.map(|by_axis| field.origin_in_order(&by_axis))
            }
            _ => self.origin,
        };
        let origin = outer.origin.or(inner_origin);
        Ok(Self { dims: outer.dims.or(self.dims), halo: outer.halo.or(self.halo), origin })
    }

    /// Checks every label against the shape.
    ///
    /// # Errors
    /// As [`Field::check`].
    pub(crate) fn check(&self, shape: &[i64]) -> Result<()> {
        self.clone().verbatim(shape.len()).check(shape)
    }

    /// Converts to a field, still unchecked. Leaves out an origin that does not fit: it lies behind
    /// the memory.
    pub(crate) fn into_field(self, shape: &[i64]) -> Field {
        let mut field = self.verbatim(shape.len());
        if field.origin.is_some() && field.check(shape).is_err() {
            field.origin = None;
        }
        field
    }

    fn verbatim(self, ndim: usize) -> Field {
        let Self { dims, halo, origin } = self;
        Field { dims, halo: halo.along(ndim), origin, ..Field::default() }
    }
}

/// Refuses names of a wrapper that the names of the array inside contradict (GDP-3). If only one of
/// the two names the axes for GT4Py, the names speak of different things, and the wrapper's count.
///
/// # Errors
/// [`Error::Argument`].
pub(crate) fn check_names(outer: &Dims, inner: &Dims) -> Result<()> {
    let gt4py = |dims: &Dims| dims.iter().all(Dim::is_gt4py);
    if outer == inner || !gt4py(outer) || !gt4py(inner) {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "dims: expected {} as the data of the DataArray says, got {} from the DataArray; transpose \
         or rename one of them",
        show_dims(inner),
        show_dims(outer)
    )))
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::field::Dim;

    fn labels(names: [&str; 2], origin: [i64; 2]) -> Labels {
        let dims = names.iter().map(|name| Dim::from_name(name)).collect();
        Labels {
            dims: Some(dims),
            halo: HaloLabel::Nothing,
            origin: Some(Extents::from_slice(&origin)),
        }
    }

    #[test]
    fn an_unstated_halo_is_zero_and_an_unknown_one_stays_unknown() {
        let none: Halo = smallvec![(0, 0), (0, 0)];
        assert_eq!(HaloLabel::Nothing.along(2), Some(none.clone()));
        assert_eq!(HaloLabel::from(None).along(2), None);
        assert_eq!(HaloLabel::from(Some(none.clone())).along(2), Some(none));
    }

    #[test]
    fn a_known_halo_wins_over_an_unknown_one_and_that_over_an_unstated_one() {
        let (unstated, unknown) = (HaloLabel::Nothing, HaloLabel::Unknown);
        let [first, second]: [Halo; 2] = [smallvec![(1, 1)], smallvec![(2, 2)]];
        let known = HaloLabel::Known(first);
        assert_eq!(unstated.clone().or(unknown.clone()), unknown);
        assert_eq!(unknown.clone().or(unstated.clone()), unknown);
        assert_eq!(unknown.or(known.clone()), known);
        assert_eq!(known.clone().or(HaloLabel::Known(second)), known);
        assert_eq!(unstated.clone().or(unstated.clone()), unstated);
    }

    #[test]
    fn an_origin_that_fits_stays() {
        let field = labels(["J", "I"], [3, 0]).into_field(&[2, 5]);
        assert_eq!(field.origin.as_deref(), Some(&[3, 0][..]), "in the order I, J");
    }

    #[test]
    fn only_an_origin_that_does_not_fit_is_left_out() {
        let one = labels(["I", "J"], [3, 0]);
        assert!(one.check(&[2, 5]).is_err());
        let field = one.clone().into_field(&[2, 5]);
        assert_eq!((field.origin, field.dims), (None, one.dims));
    }

    #[test]
    fn an_origin_before_the_memory_stays_whatever_the_names() {
        for names in [["I", "J"], ["Cell", "K"]] {
            let field = labels(names, [-1, 0]).into_field(&[2, 5]);
            assert_eq!(field.origin.as_deref(), Some(&[-1, 0][..]));
        }
    }
}

//! Both ends of a field along one divided dimension.

use std::ops::Range;

use crate::error::{Error, Result, quoted_name};
use crate::field::{Dim, HaloWidth, show_dims};

/// A dimension along which a field is divided among ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divided {
    /// Its name.
    pub dim: Dim,
    /// Points below and above the domain that neighbours fill. `None` means the whole halo.
    pub width: Option<(i64, i64)>,
    /// Points at an end of the domain that the neighbour there has too, as fields on interfaces do.
    pub shared: i64,
}

impl Divided {
    /// A dimension whose whole halo is filled, without shared points.
    #[must_use]
    pub fn whole_halo(dim: impl Into<Dim>) -> Self {
        Self { dim: dim.into(), width: None, shared: 0 }
    }
}

/// Both ends of the domain along one divided dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ends {
    dim: Dim,
    /// `None` if the field lacks the dimension.
    pub(super) axis: Option<usize>,
    pub(super) width: HaloWidth,
    shared: i64,
}

impl Ends {
    pub(super) fn new(divided: &Divided, dims: &[Dim], halo: &[HaloWidth]) -> Result<Self> {
        let Divided { dim, width, shared } = divided;
        let axis = dims.iter().position(|own| own == dim);
        let halo = axis.and_then(|axis| halo.get(axis)).copied().unwrap_or_default();
        let width = if axis.is_some() { width.unwrap_or(halo) } else { (0, 0) };
        if !(0..=halo.0).contains(&width.0) || !(0..=halo.1).contains(&width.1) {
            return Err(Error::Argument(format!(
                "width: expected from (0, 0) to the halo {halo:?} along {}, got {width:?}; narrow \
                 the width or widen the halo",
                dim.shown()
            )));
        }
        if *shared < 0 {
            return Err(Error::Argument(format!(
                "shared: expected at least 0 points along {}, got {shared}",
                dim.shown()
            )));
        }
        Ok(Self { dim: dim.clone(), axis, width, shared: *shared })
    }

    /// Points that the neighbour in a direction fills its halo with.
    fn sent(&self, step: i8) -> i64 {
        if step < 0 { self.width.1 } else { self.width.0 }
    }

    pub(super) fn check(&self, domain: &Range<i64>, step: i8) -> Result<()> {
        let (points, sent) = (domain.end.saturating_sub(domain.start), self.sent(step));
        if step == 0 || sent == 0 || points >= sent.saturating_add(self.shared) {
            return Ok(());
        }
        let shared = match self.shared {
            0 => String::new(),
            shared => format!(" beside {shared} shared with it"),
        };
        Err(Error::Argument(format!(
            "domain: expected at least the {sent} points along {} that go to the neighbour{shared}, \
             got {points}; divide it among fewer ranks, or narrow the width",
            self.dim.shown()
        )))
    }

    pub(super) fn send(&self, domain: &Range<i64>, step: i8) -> Range<i64> {
        let inner = self.shared.saturating_add(self.sent(step));
        match step {
            0 => domain.clone(),
            1.. => domain.end.saturating_sub(inner)..domain.end.saturating_sub(self.shared),
            _ => domain.start.saturating_add(self.shared)..domain.start.saturating_add(inner),
        }
    }

    pub(super) fn receive(&self, domain: &Range<i64>, step: i8) -> Range<i64> {
        match step {
            0 => domain.clone(),
            1.. => domain.end..domain.end.saturating_add(self.width.1),
            _ => domain.start.saturating_sub(self.width.0)..domain.start,
        }
    }
}

pub(super) fn check_distinct(divided: &[Divided]) -> Result<()> {
    let dims: Vec<Dim> = divided.iter().map(|one| one.dim.clone()).collect();
    let repeated = |(at, dim): &(usize, &Dim)| dims.iter().take(*at).any(|one| one == *dim);
    match dims.iter().enumerate().find(repeated) {
        None => Ok(()),
        Some((_, dim)) => Err(Error::Argument(format!(
            "dims: expected distinct names, got {} twice in {}",
            quoted_name(&dim.to_string()),
            show_dims(&dims)
        ))),
    }
}

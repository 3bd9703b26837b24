//! What NDSL's `Quantity` says of its memory: `dims`, and `origin` and `extent` of the domain, of
//! which the rest is halo. The memory comes through the array interfaces.

use std::iter::zip;

use pyo3::intern;
use pyo3::prelude::*;

use crate::error::{Error, Failure, Result};
use crate::field::{Dims, Halo, Labelled, Labels};
use crate::protocol::read::{ints, names};

/// The names of the axes.
pub(super) fn dims(obj: &Bound<'_, PyAny>) -> Result<Dims, Failure> {
    names(&obj.getattr(intern!(obj.py(), "dims"))?)
}

/// Names and halo of a quantity of this shape.
///
/// # Errors
/// [`Error::Argument`] for a domain outside of the shape.
pub(super) fn labels(obj: &Bound<'_, PyAny>, shape: &[i64]) -> Result<Labelled, Failure> {
    let py = obj.py();
    let origin = ints("origin", &obj.getattr(intern!(py, "origin"))?)?;
    let extent = ints("extent", &obj.getattr(intern!(py, "extent"))?)?;
    let halo = zip(shape, zip(&origin, &extent)).map(|(&points, (&first, &inside))| {
        (first, points.saturating_sub(first.saturating_add(inside)))
    });
    let halo: Halo = halo.collect();
    if origin.len() != shape.len()
        || extent.len() != shape.len()
        || halo.iter().any(|&(_, high)| high < 0)
    {
        return Err(Error::Argument(format!(
            "Quantity: expected origin and extent of a domain inside shape {shape:?}, got {:?} and {:?}",
            origin.as_slice(),
            extent.as_slice()
        ))
        .into());
    }
    Ok(Labels { dims: Some(dims(obj)?), halo: Some(halo).into(), origin: None }.into())
}

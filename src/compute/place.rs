//! The place of a reduction's result in an output of the caller's that has other axes.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::lift::{Lift, Names};
use super::operands::Operand;
use crate::field::{Axes, Operand as Labels, Reduced, show_dims};
use crate::layout::Extents;

/// How a result gets into an output of the caller's that has other axes.
pub(super) enum Place {
    /// It has this shape, and is copied along what the output has more; the axis of the result for
    /// each axis of the output.
    Spread(Extents, Axes),
    /// It is written with the axes of the output in another order.
    Turned(Axes),
}

/// The place of a result in the caller's output; `None` if the output has its shape and order.
pub(super) fn spread<'py>(
    py: Python<'py>,
    lift: &Lift<'_, 'py>,
    array: Labels<'_>,
    reduced: &Reduced,
) -> PyResult<Option<Place>> {
    let shape = reduced.shape(array.shape);
    let field = array.field.map(|field| reduced.field(field, &[]));
    let operand = Labels { shape: &shape, field: field.as_ref() };
    let joined = lift.join(py, &[operand], Names::Shared)?;
    let axes = joined.axes.into_iter().next().unwrap_or_default();
    let is_same = joined.shape == shape && axes.iter().copied().eq((0..shape.len()).map(Some));
    Ok((!is_same).then_some(Place::Spread(shape, axes)))
}

/// The place of quantiles at several points in an output with names: NumPy puts the axes of the
/// points, which have no names, before the others.
pub(super) fn behind_points(
    name: &str,
    output: &Operand<'_>,
    array: Labels<'_>,
    reduced: &Reduced,
) -> PyResult<Option<Place>> {
    let labels = output.labels().and_then(|labels| labels.field);
    let left = array.field.and_then(|field| reduced.field(field, &[]).dims);
    let (Some(own), Some(left)) = (labels.and_then(|field| field.dims.as_ref()), left) else {
        return Ok(None);
    };
    let find = |dim| own.iter().position(|own| own == dim);
    let Some(behind) = left.iter().map(find).collect::<Option<Vec<usize>>>() else {
        return Err(PyValueError::new_err(format!(
            "{name}: expected an output with the dims {} beside those of the points, got {}; rename \
             them",
            show_dims(&left),
            show_dims(own)
        )));
    };
    let points = (0..own.len()).filter(|at| !behind.contains(at));
    Ok(Some(Place::Turned(points.chain(behind.iter().copied()).map(Some).collect())))
}

//! Where the axes of one array belong among the dimensions of another: by name, by position, or as
//! GDP-3's draft reads three axes. Extents never choose between these.

use super::dims::{Dim, Dims, show_dims};
use super::matching::{Axes, align_by_name, is_only_numbered};
use crate::error::{Error, Result};

/// The axes of an array without names among dimensions with names: by position if it has as many, else
/// the three of I, J, K with extent 1 for those that `dims` lack.
///
/// # Errors
/// [`Error::Argument`] for another number of axes, and for extents that do not fit.
pub(super) fn without_names(own: &[i64], dims: &Dims, shape: &[i64]) -> Result<Axes> {
    let at = |dim: &Dim| [Dim::I, Dim::J, Dim::K].iter().position(|one| one == dim);
    let axes: Axes = match own.len() {
        0 => return Ok(Axes::from_elem(None, dims.len())),
        ndim if ndim == dims.len() => (0..ndim).map(Some).collect(),
        3 => dims.iter().map(at).collect(),
        _ => Axes::new(),
    };
    if axes.len() == dims.len() && !axes.contains(&None) && fits(own, &axes, shape) {
        return Ok(axes);
    }
    let three = match dims.len() != 3 && dims.iter().all(is_spatial) {
        true => ", or of the three extents of I, J and K with 1 for those that are missing",
        false => "",
    };
    Err(Error::Argument(format!(
        "shape: expected an array without names of shape {shape:?}, in the order {}{three}, got shape \
         {own:?}; give it names with as_storage(array, dims=...)",
        show_dims(dims)
    )))
}

/// The axes of a value for each dimension of the target that it is assigned to. By name in any order if
/// both have names; else by position, as NumPy assigns. Three axes are those of I, J, K if the target
/// has names and fewer dimensions.
///
/// # Errors
/// [`Error::Argument`] for names that the target lacks, and for a shape that cannot be broadcast.
pub(crate) fn assigned(
    (own, own_dims): (&[i64], Option<&Dims>),
    (shape, dims): (&[i64], Option<&Dims>),
) -> Result<Axes> {
    let has_names = |dims: &&Dims| !is_only_numbered(dims);
    let by_name = own_dims.zip(dims).map(|(own, target)| align_by_name(own, target)).transpose()?;
    let three = own.len() == 3 && shape.len() < 3 && own_dims.filter(has_names).is_none();
    let axes = match (by_name.flatten(), dims.filter(has_names)) {
        (Some(axes), _) => axes,
        (None, Some(dims)) if three && dims.iter().all(is_spatial) => {
            return without_names(own, dims, shape);
        }
        (None, _) => trailing(own.len(), shape.len()),
    };
    if fits(own, &axes, shape) {
        return Ok(axes);
    }
    let named = |dims: Option<&Dims>| {
        dims.map_or_else(String::new, |dims| format!(" with the dims {}", show_dims(dims)))
    };
    Err(Error::Argument(format!(
        "shape: expected one that broadcasts to {shape:?}{}, got {own:?}{}",
        named(dims),
        named(own_dims)
    )))
}

fn is_spatial(dim: &Dim) -> bool {
    matches!(dim, Dim::I | Dim::J | Dim::K)
}

/// The last axes, one for each of the last dimensions.
fn trailing(own: usize, ndim: usize) -> Axes {
    (0..ndim).map(|at| at.saturating_add(own).checked_sub(ndim)).collect()
}

/// True if each axis has the extent of its dimension, or 1, and those that are left out have 1.
fn fits(own: &[i64], axes: &[Option<usize>], shape: &[i64]) -> bool {
    let placed = |(axis, &wanted): (&Option<usize>, &i64)| {
        axis.is_none_or(|axis| own.get(axis).is_some_and(|&own| own == wanted || own == 1))
    };
    let used = |(axis, &extent): (usize, &i64)| extent == 1 || axes.contains(&Some(axis));
    axes.iter().zip(shape).all(placed) && own.iter().enumerate().all(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(names: &str) -> Dims {
        names.split_whitespace().map(Dim::from_name).collect()
    }

    #[test]
    fn an_array_without_names_goes_by_position_or_has_three_extents() {
        let axes = |names, own: &[i64], shape: &[i64]| {
            without_names(own, &dims(names), shape).map(|axes| axes.to_vec())
        };
        assert_eq!(axes("K I", &[1, 5], &[4, 5]), Ok(vec![Some(0), Some(1)]));
        assert_eq!(axes("K I", &[5, 1, 4], &[4, 5]), Ok(vec![Some(2), Some(0)]));
        assert!(axes("K I", &[5, 2, 4], &[4, 5]).is_err(), "J is not there, and not 1");
        assert!(axes("K I", &[5], &[4, 5]).unwrap_err().to_string().contains("as_storage(array"));
        assert_eq!(axes("x y", &[], &[4, 5]), Ok(vec![None, None]));
        assert!(axes("x y", &[4, 5, 1], &[4, 5]).is_err());
    }

    #[test]
    fn three_axes_beside_three_dimensions_go_by_position_whatever_the_extents() {
        let axes = |own: &[i64]| without_names(own, &dims("K J I"), &[4, 3, 2]);
        assert_eq!(axes(&[4, 3, 2]).unwrap().as_slice(), [Some(0), Some(1), Some(2)]);
        assert!(axes(&[2, 3, 4]).is_err(), "I, J, K fits too, and is not meant");
    }

    #[test]
    fn a_value_goes_by_name_in_any_order_and_else_by_position() {
        let axes = |own: &[i64], names: Option<&str>, target: &str, shape: &[i64]| {
            let own_dims = names.map(dims);
            assigned((own, own_dims.as_ref()), (shape, Some(&dims(target))))
                .map(|axes| axes.to_vec())
        };
        assert_eq!(axes(&[3, 2], Some("J I"), "I J", &[2, 3]), Ok(vec![Some(1), Some(0)]));
        assert_eq!(axes(&[1], Some("J"), "I J", &[2, 3]), Ok(vec![None, Some(0)]));
        assert_eq!(axes(&[3], None, "I J", &[2, 3]), Ok(vec![None, Some(0)]));
        assert_eq!(axes(&[2, 3, 1], None, "I J", &[2, 3]), Ok(vec![Some(0), Some(1)]));
        assert_eq!(axes(&[1, 3, 1], None, "I J", &[3, 3]), Ok(vec![Some(0), Some(1)]), "along J");
        assert_eq!(axes(&[1, 2, 3], None, "x y", &[2, 3]), Ok(vec![Some(1), Some(2)]));
        assert!(axes(&[1, 2, 3], None, "I J", &[2, 3]).is_err(), "K is 3");
        assert!(axes(&[2, 4], None, "I J", &[2, 3]).is_err());
    }
}

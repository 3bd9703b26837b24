//! Matching the axes of two arrays by the names of their dimensions.

use smallvec::SmallVec;

use super::dims::{Dim, Dims, show_dims};
use crate::error::{Error, Result};

/// A requested order of axes.
pub(crate) type AxisOrder = SmallVec<[usize; 4]>;

/// Source axis of each dimension; `None` for a new dimension.
pub(crate) type Axes = SmallVec<[Option<usize>; 4]>;

/// Finds the axis of `own` for each name of `target`. An inner `None` means that `own` lacks the
/// name and is repeated along it. An outer `None` means that one side has no names, so that the
/// axes match by position.
///
/// # Errors
/// [`Error::Argument`] with the line that renames, if `own` has a name that `target` lacks.
pub(crate) fn align_by_name(own: &Dims, target: &Dims) -> Result<Option<Axes>> {
    if own.iter().all(|dim| target.contains(dim)) {
        let axis_of = |dim| own.iter().position(|one| one == dim);
        return Ok(Some(target.iter().map(axis_of).collect()));
    }
    if is_only_numbered(own) || is_only_numbered(target) {
        return Ok(None);
    }
    let strange: Vec<&Dim> = own.iter().filter(|dim| !target.contains(dim)).collect();
    let same_kind = strange.iter().all(|dim| dim.is_gt4py()) && target.iter().all(Dim::is_gt4py);
    let line = match same_kind {
        true => String::new(),
        false => format!(", for example with value.rename({})", mapping(own, &strange, target)),
    };
    Err(Error::Argument(format!(
        "dims: expected names among {}, got {}; rename them{line}, or pass an array without names \
         to match axes by position",
        show_dims(target),
        show_dims(own)
    )))
}

/// As [`align_by_name`], for an array in a key that covers the dimensions `covered` out of `dims`.
/// Returns the order of the array's axes that matches `covered`. A single axis may have any name
/// that `dims` lack: that of the points which the array lists.
///
/// # Errors
/// [`Error::Argument`] if its names are others than `covered`.
pub(crate) fn align_key(own: &Dims, covered: &[Dim], dims: &Dims) -> Result<Option<AxisOrder>> {
    let axis_of = |dim| own.iter().position(|one| one == dim);
    let listed = covered.len() == 1 && are_unrelated(own, dims);
    match covered.iter().map(axis_of).collect::<Option<AxisOrder>>() {
        Some(axes) if own.len() == covered.len() => Ok(Some(axes)),
        _ if listed || is_only_numbered(own) || is_only_numbered(dims) => Ok(None),
        _ => Err(Error::Argument(format!(
            "key: expected an array with the dims {}, which it stands for, got {}; pass an array \
             without names to match axes by position",
            show_dims(covered),
            show_dims(own)
        ))),
    }
}

/// True if two sets of names are about different things.
#[must_use]
pub(crate) fn are_unrelated(own: &Dims, target: &Dims) -> bool {
    let gt4py = |dims: &Dims| dims.iter().all(Dim::is_gt4py);
    let disjoint = !own.iter().any(|dim| target.contains(dim));
    disjoint && !(gt4py(own) && gt4py(target))
}

/// True if every name is the placeholder of an unnamed axis, or there is none: axes match by
/// position.
#[must_use]
pub(crate) fn is_only_numbered(dims: &Dims) -> bool {
    dims.iter().enumerate().all(|(axis, dim)| dim.is_unnamed(axis))
}

/// Formats a mapping as Python has it, from the names `strange` of an array with the dims `own` to
/// those of `target` that it lacks: the only one that is left, or the one with the same meaning,
/// else `...`. Only for the text: nothing is mapped by it.
#[must_use]
pub(crate) fn mapping(own: &[Dim], strange: &[&Dim], target: &[Dim]) -> String {
    let free: Vec<&Dim> = target.iter().filter(|dim| !own.contains(dim)).collect();
    let target_of = |dim: &Dim| match (strange, free.as_slice()) {
        ([_], &[only]) => Some(only),
        _ => free
            .iter()
            .copied()
            .find(|free| meaning(dim).is_some_and(|of| meaning(free) == Some(of))),
    };
    let quoted = |dim: &Dim| format!("\"{}\"", dim.shown());
    let pair =
        |dim: &&Dim| format!("{}: {}", quoted(dim), target_of(dim).map_or("...".into(), quoted));
    format!("{{{}}}", strange.iter().map(pair).collect::<Vec<_>>().join(", "))
}

/// Guesses the meaning of a name.
fn meaning(dim: &Dim) -> Option<Dim> {
    match dim.to_string().to_lowercase().as_str() {
        "lon" | "longitude" | "x" | "i" => Some(Dim::I),
        "lat" | "latitude" | "y" | "j" => Some(Dim::J),
        "lev" | "level" | "z" | "k" | "height" | "depth" | "plev" => Some(Dim::K),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(text: &str) -> Dims {
        text.chars().map(|letter| Dim::from_name(&letter.to_string())).collect()
    }

    #[test]
    fn names_match_if_one_side_has_them_all() {
        let axes = |own, target| {
            align_by_name(&dims(own), &dims(target)).map(|axes| axes.map(|axes| axes.to_vec()))
        };
        assert_eq!(axes("KI", "IJK"), Ok(Some(vec![Some(1), None, Some(0)])));
        assert!(axes("yz", "xy").is_err(), "y has a place, z has none");
        assert!(axes("IJ", "IK").unwrap_err().to_string().contains("among ('I', 'K')"));
    }

    #[test]
    fn names_of_another_kind_are_refused_with_the_line_that_maps_them() {
        let error = align_by_name(&dims("zyx"), &dims("IJK")).unwrap_err().to_string();
        assert!(error.contains(r#"rename({"z": "K", "y": "J", "x": "I"})"#), "{error}");
    }

    #[test]
    fn axes_that_are_only_numbered_match_by_position() {
        let numbered: Dims = [Dim::unnamed(0), Dim::unnamed(1)].into_iter().collect();
        assert_eq!(align_by_name(&numbered, &dims("JI")), Ok(None));
        assert_eq!(align_by_name(&dims("JI"), &numbered), Ok(None));
    }
}

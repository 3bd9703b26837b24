//! The dimensions and labels of a result of several operands, by name.
//!
//! Storages with names meet by name. An array without names beside them goes by position if it has
//! as many dimensions as the result, or the three of I, J, K with extent 1 for those that the result
//! lacks. Without any names all go by position, as in NumPy.

use smallvec::SmallVec;

use super::description::Field;
use super::dims::{Dim, Dims, show_dims};
use super::matching::{Axes, is_only_numbered, mapping};
use crate::error::{Error, Result};
use crate::layout::Extents;

/// An operand: the shape of an array, and its field if it is a storage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub(crate) shape: &'a [i64],
    pub(crate) field: Option<&'a Field>,
}

/// The dimensions of a result, and where each operand has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Joined {
    /// Names of the result's dimensions; `None` if no operand has any.
    pub(crate) dims: Option<Dims>,
    pub(crate) shape: Extents,
    /// For each operand the axis of each dimension of the result; `None` where it is repeated. An
    /// axis that is left out has extent 1.
    pub(crate) axes: SmallVec<[Axes; 2]>,
}

impl Operand<'_> {
    /// The names, of an operand that has dimensions.
    fn names(&self) -> Option<&Dims> {
        let dims = self.field.and_then(|field| field.dims.as_ref());
        dims.filter(|dims| !dims.is_empty() && !is_only_numbered(dims))
    }
}

impl Joined {
    /// Joins the dimensions of operands. Those of the first one with names come first, then what the
    /// others add.
    ///
    /// # Errors
    /// [`Error::Argument`] for names that both operands have in different orders, for different
    /// extents under one name, for unrelated names, and for an array that fits nothing.
    pub(crate) fn new(operands: &[Operand<'_>]) -> Result<Self> {
        let mut named = operands.iter().filter(|one| one.names().is_some()).peekable();
        if named.peek().is_none() {
            return by_position(operands);
        }
        let (mut dims, mut shape) = (Dims::new(), Extents::new());
        for operand in named {
            add(&mut dims, &mut shape, operand)?;
        }
        Self::onto(dims, shape, operands)
    }

    /// Puts operands onto a target that has all of their dimensions, and perhaps more.
    ///
    /// # Errors
    /// As [`Joined::new`], and for a dimension that the target lacks.
    pub(crate) fn within(target: Operand<'_>, operands: &[Operand<'_>]) -> Result<Self> {
        let Some(own) = target.names() else {
            return Self::new(operands)?.broadcast_to(target.shape);
        };
        let (mut dims, mut shape) = (own.clone(), Extents::from_slice(target.shape));
        for operand in operands {
            if let Some(dim) = operand.names().and_then(|names| lacking(own, names)) {
                return Err(Error::Argument(format!(
                    "out: expected a storage with the dimension '{dim}', got one with the dims {}; \
                     pass one that has it, or none",
                    show_dims(own)
                )));
            }
            add(&mut dims, &mut shape, operand)?;
        }
        Self::onto(dims, shape, operands)
    }

    /// The axes of every operand in the order of `dims`.
    fn onto(dims: Dims, shape: Extents, operands: &[Operand<'_>]) -> Result<Self> {
        let axes = |operand: &Operand<'_>| match operand.names() {
            Some(own) => Ok(dims.iter().map(|dim| own.iter().position(|one| one == dim)).collect()),
            None => without_names(operand.shape, &dims, &shape),
        };
        let axes = operands.iter().map(axes).collect::<Result<_>>()?;
        Ok(Self { dims: Some(dims), shape, axes })
    }

    /// The same for a target of this shape, by position.
    fn broadcast_to(mut self, shape: &[i64]) -> Result<Self> {
        let more = shape.len().checked_sub(self.shape.len());
        let behind = more.and_then(|more| shape.get(more..)).unwrap_or_default();
        let fits = |(&own, &wanted): (&i64, &i64)| own == wanted || own == 1;
        if more.is_none() || !self.shape.iter().zip(behind).all(fits) {
            return Err(Error::Argument(format!(
                "out: expected an array to whose shape {:?} can be broadcast, got shape {shape:?}; \
                 pass one of that shape, or none",
                self.shape.as_slice()
            )));
        }
        for axes in &mut self.axes {
            axes.insert_many(0, std::iter::repeat_n(None, more.unwrap_or(0)));
        }
        Ok(Self { dims: None, shape: shape.into(), axes: self.axes })
    }
}

/// The first name that `own` lacks.
fn lacking<'a>(own: &Dims, names: &'a Dims) -> Option<&'a Dim> {
    names.iter().find(|dim| !own.contains(dim))
}

/// Adds what a named operand has to the dimensions of those before it.
fn add(dims: &mut Dims, shape: &mut Extents, operand: &Operand<'_>) -> Result<()> {
    let Some(own) = operand.names() else { return Ok(()) };
    check_related(dims, own)?;
    let mut last = None;
    for (dim, &extent) in own.iter().zip(operand.shape) {
        let at = dims.iter().position(|known| known == dim);
        match at.and_then(|at| shape.get(at)) {
            None => {}
            Some(&known) if known != extent => {
                return Err(Error::Argument(format!(
                    "shape: expected one extent of '{dim}' in all operands, got {known} and \
                     {extent}; select the same points in both, or drop it with an integer"
                )));
            }
            Some(_) if last > at => return Err(other_order(dims, own)),
            Some(_) => last = at,
        }
    }
    for (dim, &extent) in own.iter().zip(operand.shape) {
        if !dims.contains(dim) {
            dims.push(dim.clone());
            shape.push(extent);
        }
    }
    Ok(())
}

fn other_order(dims: &Dims, own: &Dims) -> Error {
    let shared: Dims = dims.iter().filter(|dim| own.contains(dim)).cloned().collect();
    let rest = own.iter().filter(|dim| !dims.contains(dim));
    let order: Dims = shared.iter().chain(rest).cloned().collect();
    let listed = order.iter().map(|dim| format!("\"{dim}\"")).collect::<Vec<_>>().join(", ");
    Error::Argument(format!(
        "dims: expected {} in the same order in all operands, got {} and {}; use transpose({listed}) \
         of the second",
        show_dims(&shared),
        show_dims(dims),
        show_dims(own)
    ))
}

/// Refuses names that are about different things: none is shared, one side has I or J, and the
/// other no name that GT4Py knows.
fn check_related(dims: &Dims, own: &Dims) -> Result<()> {
    let horizontal = |names: &Dims| names.contains(&Dim::I) || names.contains(&Dim::J);
    let foreign = |names: &Dims| !names.iter().any(Dim::is_gt4py);
    let apart = !own.iter().any(|dim| dims.contains(dim));
    let unrelated = (horizontal(dims) && foreign(own)) || (horizontal(own) && foreign(dims));
    if dims.is_empty() || !(apart && unrelated) {
        return Ok(());
    }
    let strange: Vec<&Dim> = own.iter().collect();
    Err(Error::Argument(format!(
        "dims: expected operands that share a dimension, got {} and {}; rename one of them, for \
         example with rename({})",
        show_dims(dims),
        show_dims(own),
        mapping(own, &strange, dims)
    )))
}

/// The axes of an array without names.
fn without_names(own: &[i64], dims: &Dims, shape: &[i64]) -> Result<Axes> {
    let fits = |(&own, &wanted): (&i64, &i64)| own == wanted || own == 1;
    if own.is_empty() {
        return Ok(Axes::from_elem(None, dims.len()));
    }
    if own.len() == dims.len() && own.iter().zip(shape).all(fits) {
        return Ok((0..own.len()).map(Some).collect());
    }
    let at = |dim: &Dim| [Dim::I, Dim::J, Dim::K].iter().position(|one| one == dim);
    let axes: Axes = dims.iter().map(at).collect();
    let placed = |(axis, &wanted): (&Option<usize>, &i64)| {
        axis.and_then(|axis| own.get(axis)).is_some_and(|own| fits((own, &wanted)))
    };
    let is_left_out = |axis: usize| !axes.contains(&Some(axis));
    let rest_is_one = own.iter().enumerate().all(|(axis, &own)| own == 1 || !is_left_out(axis));
    if own.len() == 3 && rest_is_one && axes.iter().zip(shape).all(placed) {
        return Ok(axes);
    }
    Err(Error::Argument(format!(
        "shape: expected an array without names of shape {shape:?}, in the order {}, or of the three \
         extents of I, J and K with 1 for those that are missing, got shape {own:?}; give it names \
         with as_storage(array, dims=...)",
        show_dims(dims)
    )))
}

/// Names that mean nothing but positions: those of the first storage that has as many.
fn positions(operands: &[Operand<'_>], ndim: usize) -> Option<Dims> {
    let mut storages = operands.iter().filter_map(|one| one.field.map(|field| (one, field)));
    let (_, field) = storages.find(|(one, _)| one.shape.len() == ndim)?;
    field.dims.clone().filter(is_only_numbered)
}

/// Operands without names, as NumPy broadcasts.
fn by_position(operands: &[Operand<'_>]) -> Result<Joined> {
    let ndim = operands.iter().map(|one| one.shape.len()).max().unwrap_or(0);
    let mut shape = Extents::from_elem(1, ndim);
    let mut all = SmallVec::new();
    for operand in operands {
        let more = ndim.saturating_sub(operand.shape.len());
        for (known, &extent) in shape.iter_mut().skip(more).zip(operand.shape) {
            if *known != extent && *known != 1 && extent != 1 {
                let shapes: Vec<_> =
                    operands.iter().map(|one| format!("{:?}", one.shape)).collect();
                return Err(Error::Argument(format!(
                    "shape: expected shapes that can be broadcast together, got {}; give the \
                     storages dims to match them by name",
                    shapes.join(" and ")
                )));
            }
            *known = if *known == 1 { extent } else { *known };
        }
        let axis = |at: usize| at.checked_sub(more);
        all.push((0..ndim).map(axis).collect());
    }
    Ok(Joined { dims: positions(operands, ndim), shape, axes: all })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(names: &str) -> Field {
        let dims = names.split_whitespace().map(Dim::from_name).collect();
        Field { dims: Some(dims), ..Field::default() }
    }

    fn joined(operands: &[(&str, &[i64])]) -> Result<(String, Vec<i64>)> {
        let fields: Vec<_> = operands.iter().map(|(names, _)| field(names)).collect();
        let named = |field| Some(field).filter(|field: &&Field| field.dims != Some(Dims::new()));
        let operands: Vec<_> = operands
            .iter()
            .zip(&fields)
            .map(|((_, shape), field)| Operand { shape, field: named(field) })
            .collect();
        let joined = Joined::new(&operands)?;
        let names: Vec<_> = joined.dims.iter().flatten().map(ToString::to_string).collect();
        Ok((names.join(" "), joined.shape.to_vec()))
    }

    fn refused(operands: &[(&str, &[i64])]) -> String {
        joined(operands).unwrap_err().to_string()
    }

    #[test]
    fn the_dims_of_the_first_storage_come_first() {
        let found = joined(&[("K", &[4]), ("I J", &[2, 3])]).unwrap();
        assert_eq!(found, ("K I J".into(), vec![4, 2, 3]));
        let found = joined(&[("", &[3, 4]), ("I K", &[3, 4]), ("x K", &[5, 4])]).unwrap_err();
        assert!(found.to_string().contains("shape [3, 4, 5]"), "{found}");
    }

    #[test]
    fn shared_names_have_one_order_and_one_extent() {
        let text = refused(&[("I J", &[3, 3]), ("J I", &[3, 3])]);
        assert!(text.contains(r#"use transpose("I", "J") of the second"#), "{text}");
        let text = refused(&[("I J K", &[3, 3, 2]), ("K I", &[2, 3])]);
        assert!(text.contains(r#"transpose("I", "K")"#), "{text}");
        assert!(refused(&[("I", &[3]), ("I", &[1])]).contains("one extent of 'I'"));
    }

    #[test]
    fn unrelated_names_are_refused_if_one_side_is_horizontal() {
        let text = refused(&[("I J", &[2, 3]), ("lon", &[2])]);
        assert!(text.contains(r#"rename({"lon": "I"})"#), "{text}");
        assert!(joined(&[("K", &[2]), ("lon", &[2])]).is_ok());
        assert!(joined(&[("I J", &[2, 3]), ("lon I", &[2, 2])]).is_ok());
    }

    #[test]
    fn an_array_without_names_goes_by_position_or_has_three_extents() {
        let axes = |names, own: &[i64], shape: &[i64]| {
            without_names(own, field(names).dims.as_ref().unwrap(), shape).map(|axes| axes.to_vec())
        };
        assert_eq!(axes("K I", &[1, 5], &[4, 5]), Ok(vec![Some(0), Some(1)]));
        assert_eq!(axes("K I", &[5, 1, 4], &[4, 5]), Ok(vec![Some(2), Some(0)]));
        assert!(axes("K I", &[5, 2, 4], &[4, 5]).is_err(), "J is not there, and not 1");
        assert!(axes("K I", &[5], &[4, 5]).unwrap_err().to_string().contains("as_storage(array"));
        assert_eq!(axes("x y", &[], &[4, 5]), Ok(vec![None, None]));
    }

    #[test]
    fn without_names_all_go_by_position() {
        assert_eq!(joined(&[("", &[3, 1]), ("", &[4])]), Ok((String::new(), vec![3, 4])));
        assert!(refused(&[("", &[3]), ("", &[4])]).contains("[3] and [4]"));
    }

    #[test]
    fn a_target_may_have_more_dims_and_no_fewer() {
        let (all, one) = (field("I J K"), field("J"));
        let target = Operand { shape: &[2, 3, 4], field: Some(&all) };
        let operand = Operand { shape: &[3], field: Some(&one) };
        let joined = Joined::within(target, &[operand]).unwrap();
        assert_eq!(joined.axes[0].as_slice(), [None, Some(0), None]);
        let text = Joined::within(operand, &[target]).unwrap_err().to_string();
        assert!(text.contains("with the dimension 'I'"), "{text}");
        let plain = Operand { shape: &[2, 3], field: None };
        let larger = Operand { shape: &[4, 3], field: None };
        assert!(Joined::within(plain, &[larger]).unwrap_err().to_string().starts_with("out:"));
    }
}

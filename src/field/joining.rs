//! The dimensions and labels of a result of several operands, by name.
//!
//! Storages with names meet by name. An array without names beside them goes by position if it has
//! as many dimensions as the result, else it has the three of I, J, K with extent 1 for those that the
//! result lacks. Without any names all go by position, as in NumPy.

use smallvec::SmallVec;

use super::description::Field;
use super::dims::{Dim, Dims, show_dims};
use super::matching::{Axes, is_only_numbered, mapping};
use super::placing::{assigned, without_names};
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

impl<'a> Operand<'a> {
    fn dims(&self) -> Option<&'a Dims> {
        self.field.and_then(|field| field.dims.as_ref())
    }

    /// The names, of an operand that has dimensions.
    pub(super) fn names(&self) -> Option<&'a Dims> {
        self.dims().filter(|dims| !dims.is_empty() && !is_only_numbered(dims))
    }
}

impl Joined {
    /// Joins the dimensions of operands. The result has those of the first operand that has all of
    /// them; else, if GT4Py knows all names, they are in the order I, J, K, data dimensions; else those
    /// of the first operand come first, then what the others add.
    ///
    /// # Errors
    /// [`Error::Argument`] for names that two operands have in different orders, for different
    /// extents under one name, for unrelated names, and for an array that fits nothing.
    pub(crate) fn new(operands: &[Operand<'_>]) -> Result<Self> {
        let named: Named<'_> = operands.iter().filter_map(Operand::names).collect();
        if named.is_empty() {
            return by_position(operands);
        }
        check_related(&named)?;
        check_orders(&named)?;
        let (dims, shape) = in_order_of_result(union(operands)?, &named);
        Self::onto(dims, shape, operands)
    }

    /// As [`Joined::new`], for operands that need not be related: the dimensions of the first, then what
    /// the others add.
    ///
    /// # Errors
    /// As [`Joined::new`].
    pub(crate) fn outer(operands: &[Operand<'_>]) -> Result<Self> {
        let named: Named<'_> = operands.iter().filter_map(Operand::names).collect();
        if named.is_empty() {
            return by_position(operands);
        }
        check_orders(&named)?;
        let (dims, shape) = union(operands)?;
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
        let named = || operands.iter().filter_map(Operand::names);
        named().try_for_each(|names| check_has(own, names))?;
        check_orders(&std::iter::once(own).chain(named()).collect::<Named<'_>>())?;
        let (mut dims, mut shape) = (own.clone(), Extents::from_slice(target.shape));
        for operand in operands {
            add(&mut dims, &mut shape, operand)?;
        }
        Self::onto(dims, shape, operands)
    }

    /// Puts the only operand of a function onto a target, as an assignment does: in any order of names.
    ///
    /// # Errors
    /// As [`assigned`].
    pub(crate) fn assigned(target: Operand<'_>, operand: Operand<'_>) -> Result<Self> {
        if let (Some(own), Some(names)) = (target.names(), operand.names()) {
            check_has(own, names)?;
        }
        let axes = assigned((operand.shape, operand.dims()), (target.shape, target.dims()))?;
        let (dims, shape) = (target.names().cloned(), target.shape.into());
        Ok(Self { dims, shape, axes: SmallVec::from_elem(axes, 1) })
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
    ///
    /// # Errors
    /// [`Error::Argument`] for a target of another shape.
    pub(crate) fn broadcast_to(mut self, shape: &[i64]) -> Result<Self> {
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

/// The names of each operand that has some.
type Named<'a> = SmallVec<[&'a Dims; 4]>;

/// Refuses a target with the dims `own` that lacks one of `names`.
fn check_has(own: &Dims, names: &Dims) -> Result<()> {
    let Some(dim) = names.iter().find(|dim| !own.contains(dim)) else { return Ok(()) };
    Err(Error::Argument(format!(
        "out: expected a storage with the dimension '{}', got one with the dims {}; pass one that \
         has it, or none",
        dim.shown(),
        show_dims(own)
    )))
}

/// Refuses names that two operands have in different orders.
fn check_orders(named: &[&Dims]) -> Result<()> {
    for (at, own) in named.iter().enumerate() {
        for before in named.iter().take(at) {
            let places = own.iter().filter_map(|dim| before.iter().position(|one| one == dim));
            if !places.is_sorted() {
                return Err(other_order(before, own));
            }
        }
    }
    Ok(())
}

/// The dimensions and extents of a result, which are `known` in the order of the operands.
fn in_order_of_result(known: (Dims, Extents), named: &[&Dims]) -> (Dims, Extents) {
    let (known, extents) = known;
    let dims = match named.iter().position(|own| own.len() == known.len()) {
        Some(0) => return (known, extents),
        Some(whole) => named.get(whole).map(|&own| own.clone()).unwrap_or_default(),
        None if known.iter().all(Dim::is_gt4py) => {
            let mut dims = known.clone();
            dims.sort_by_key(Dim::rank);
            dims
        }
        None => return (known, extents),
    };
    let extent = |dim| known.iter().zip(&extents).find(|(one, _)| *one == dim);
    let shape = dims.iter().filter_map(extent).map(|(_, &extent)| extent).collect();
    (dims, shape)
}

/// The dimensions of all operands, in their order, and the extents.
fn union(operands: &[Operand<'_>]) -> Result<(Dims, Extents)> {
    let (mut dims, mut shape) = (Dims::new(), Extents::new());
    operands.iter().try_for_each(|operand| add(&mut dims, &mut shape, operand))?;
    Ok((dims, shape))
}

/// Adds what a named operand has to the dimensions of those before it.
fn add(dims: &mut Dims, shape: &mut Extents, operand: &Operand<'_>) -> Result<()> {
    let Some(own) = operand.names() else { return Ok(()) };
    for (dim, &extent) in own.iter().zip(operand.shape) {
        match dims.iter().zip(shape.iter()).find(|(known, _)| *known == dim) {
            None => {
                dims.push(dim.clone());
                shape.push(extent);
            }
            Some((_, &known)) if known != extent => {
                return Err(Error::Argument(format!(
                    "shape: expected one extent of '{}' in all operands, got {known} and \
                     {extent}; select the same points in both, or drop it with an integer",
                    dim.shown()
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn other_order(dims: &Dims, own: &Dims) -> Error {
    let shared: Dims = dims.iter().filter(|dim| own.contains(dim)).cloned().collect();
    let rest = own.iter().filter(|dim| !dims.contains(dim));
    let order: Dims = shared.iter().chain(rest).cloned().collect();
    let listed =
        order.iter().map(|dim| format!("\"{}\"", dim.shown())).collect::<Vec<_>>().join(", ");
    Error::Argument(format!(
        "dims: expected {} in the same order in all operands, got {} and {}; use transpose({listed}) \
         of the second",
        show_dims(&shared),
        show_dims(dims),
        show_dims(own)
    ))
}

/// Refuses names that are about different things: an operand shares none with those before it, one side
/// has I or J, and the other no name that GT4Py knows.
fn check_related(named: &[&Dims]) -> Result<()> {
    for (at, own) in named.iter().enumerate().skip(1) {
        let before = named.get(..at).unwrap_or_default();
        let shares = before.iter().any(|dims| own.iter().any(|dim| dims.contains(dim)));
        if !shares && are_apart(before, own) {
            return Err(unrelated(before, own));
        }
    }
    Ok(())
}

fn are_apart(before: &[&Dims], own: &Dims) -> bool {
    let horizontal = |names: &Dims| names.contains(&Dim::I) || names.contains(&Dim::J);
    let foreign = |names: &Dims| !names.iter().any(Dim::is_gt4py);
    let is_horizontal = before.iter().any(|names| horizontal(names));
    let is_foreign = before.iter().all(|names| foreign(names));
    (is_horizontal && foreign(own)) || (horizontal(own) && is_foreign)
}

fn unrelated(before: &[&Dims], own: &Dims) -> Error {
    let strange: Vec<&Dim> = own.iter().collect();
    let mut dims = Dims::new();
    for dim in before.iter().flat_map(|names| names.iter()) {
        if !dims.contains(dim) {
            dims.push(dim.clone());
        }
    }
    Error::Argument(format!(
        "dims: expected operands that share a dimension, got {} and {}; rename one of them, for \
         example with rename({})",
        show_dims(&dims),
        show_dims(own),
        mapping(own, &strange, &dims)
    ))
}

/// Names that mean nothing but positions: those of the first storage that has as many.
fn positions(operands: &[Operand<'_>], ndim: usize) -> Option<Dims> {
    let mut storages = operands.iter().filter_map(|one| one.field.map(|field| (one, field)));
    let (_, field) = storages.find(|(one, _)| one.shape.len() == ndim)?;
    field.dims.clone().filter(is_only_numbered)
}

/// Operands without names, as NumPy broadcasts.
pub(super) fn by_position(operands: &[Operand<'_>]) -> Result<Joined> {
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
    fn the_dims_of_the_first_operand_that_has_all_of_them_are_the_result_s() {
        let found = joined(&[("K", &[4]), ("K I J", &[4, 2, 3]), ("I J", &[2, 3])]).unwrap();
        assert_eq!(found, ("K I J".into(), vec![4, 2, 3]));
        let found = joined(&[("y", &[3]), ("x y", &[2, 3])]).unwrap();
        assert_eq!(found, ("x y".into(), vec![2, 3]));
    }

    #[test]
    fn dims_of_which_no_operand_has_all_are_in_gt4py_s_order_if_it_knows_them() {
        let found = joined(&[("K", &[4]), ("I J", &[2, 3])]).unwrap();
        assert_eq!(found, ("I J K".into(), vec![2, 3, 4]));
        let found = joined(&[("1", &[5]), ("K 0", &[4, 3]), ("J", &[2])]).unwrap();
        assert_eq!(found, ("J K 0 1".into(), vec![2, 4, 3, 5]));
        let found = joined(&[("K", &[4]), ("lev I", &[2, 3])]).unwrap();
        assert_eq!(found, ("K lev I".into(), vec![4, 2, 3]));
        let found = joined(&[("", &[3, 4]), ("I K", &[3, 4]), ("x K", &[5, 4])]).unwrap_err();
        assert!(found.to_string().contains("shape [3, 4, 5]"), "{found}");
    }

    #[test]
    fn shared_names_have_one_order_and_one_extent() {
        let text = refused(&[("I J", &[3, 3]), ("J I", &[3, 3])]);
        assert!(text.contains(r#"use transpose("I", "J") of the second"#), "{text}");
        let text = refused(&[("I J K", &[3, 3, 2]), ("K I", &[2, 3])]);
        assert!(text.contains(r#"transpose("I", "K")"#), "{text}");
        let text = refused(&[("I", &[3]), ("I J", &[3, 2]), ("J I", &[2, 3])]);
        assert!(text.contains("got ('I', 'J') and ('J', 'I')"), "{text}");
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
    fn without_names_all_go_by_position() {
        assert_eq!(joined(&[("", &[3, 1]), ("", &[4])]), Ok((String::new(), vec![3, 4])));
        assert!(refused(&[("", &[3]), ("", &[4])]).contains("[3] and [4]"));
    }

    #[test]
    fn an_outer_product_joins_unrelated_names_in_the_order_of_the_operands() {
        let (plane, line) = (field("I J"), field("x"));
        let operands = [
            Operand { shape: &[4], field: Some(&line) },
            Operand { shape: &[2, 3], field: Some(&plane) },
        ];
        let joined = Joined::outer(&operands).unwrap();
        assert_eq!(joined.shape.as_slice(), [4, 2, 3]);
        assert!(Joined::new(&operands).is_err());
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

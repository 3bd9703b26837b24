//! Dimensions of operands, held against the rules of `docs/arithmetic.md` in plain loops: the dims and the
//! halo of a result, the element of each operand for each of its points, and what is refused.
#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use dlfield::fuzzed::{Joint, join, join_within, place};
use dlfield::{Dim, Dims, Field, Halo};
use fuzz::elements::{Index, indices};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 10] = ["I", "J", "K", "0", "1", "x", "Cell", "dim_0", "dim_1", "lon"];

/// An operand: an array, or a storage with names or without.
#[derive(Debug, Clone, Arbitrary)]
struct Operand {
    #[arbitrary(with = shape)]
    shape: Vec<i64>,
    /// None for an array that is no storage.
    #[arbitrary(with = names)]
    names: Option<Vec<usize>>,
    unnamed: bool,
    halo: Option<[(u8, u8); 4]>,
}

#[derive(Debug, Arbitrary)]
struct Input {
    #[arbitrary(with = operands)]
    operands: Vec<Operand>,
    target: Operand,
    /// Extents of names, which most operands share.
    #[arbitrary(with = extents)]
    extents: [i64; 10],
    /// True if all axes have the extent of their name.
    #[arbitrary(with = mostly)]
    agree: bool,
}

fn mostly(input: &mut Unstructured<'_>) -> Result<bool> {
    input.ratio(7, 8)
}

fn operands(input: &mut Unstructured<'_>) -> Result<Vec<Operand>> {
    (0..input.int_in_range(0..=3)?).map(|_| input.arbitrary()).collect()
}

fn shape(input: &mut Unstructured<'_>) -> Result<Vec<i64>> {
    (0..input.int_in_range(0..=4)?).map(|_| input.int_in_range(0..=3)).collect()
}

fn extents(input: &mut Unstructured<'_>) -> Result<[i64; 10]> {
    let mut all = [0; 10];
    for extent in &mut all {
        *extent = if input.ratio(7, 8)? { input.int_in_range(1..=4)? } else { 0 };
    }
    Ok(all)
}

/// Distinct names, most of them in GT4Py's order.
fn names(input: &mut Unstructured<'_>) -> Result<Option<Vec<usize>>> {
    if input.ratio(1, 4)? {
        return Ok(None);
    }
    let most = if input.ratio(2, 3)? { 4 } else { NAMES.len() - 1 };
    let mut names = vec![];
    for _ in 0..4 {
        let name = input.int_in_range(0..=most)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if input.ratio(1, 2)? {
        names.sort_unstable();
    }
    Ok(Some(names))
}

/// An operand as it is passed.
#[derive(Debug, Clone)]
struct Passed {
    shape: Vec<i64>,
    field: Option<Field>,
}

impl Operand {
    fn passed(self, extents: &[i64; 10], agree: bool) -> Passed {
        let Self { mut shape, names, unnamed, halo } = self;
        let Some(names) = names else { return Passed { shape, field: None } };
        let names = &names[..names.len().min(shape.len())];
        shape.truncate(names.len());
        if agree {
            shape = names.iter().map(|&name| extents[name]).collect();
        }
        let dims: Dims = names.iter().map(|&name| Dim::from_name(NAMES[name])).collect();
        let width = |(at, extent): (usize, &i64)| {
            let (low, high) = halo.map_or((0, 0), |halo| halo[at]);
            let low = i64::from(low % 4).min(*extent);
            let is_data = matches!(dims[at], Dim::Data(_));
            if is_data { (0, 0) } else { (low, i64::from(high % 4).min(extent - low)) }
        };
        let widths: Halo = shape.iter().enumerate().map(width).collect();
        let halo = halo.map(|_| widths);
        let dims = Some(dims).filter(|_| !unnamed);
        Passed { shape, field: Some(Field { dims, halo, ..Field::default() }) }
    }
}

impl Passed {
    fn as_operand(&self) -> (&[i64], Option<&Field>) {
        (&self.shape, self.field.as_ref())
    }

    /// Its names; `None` for axes that go by position.
    fn names(&self) -> Option<&Dims> {
        let dims = self.field.as_ref()?.dims.as_ref()?;
        let only_numbers =
            dims.iter().enumerate().all(|(axis, dim)| dim.to_string() == format!("dim_{axis}"));
        (!only_numbers).then_some(dims)
    }
}

/// Names and extents of a result, and for each operand the axis of each of its dimensions.
struct Model {
    dims: Option<Dims>,
    shape: Vec<i64>,
    axes: Vec<Vec<Option<usize>>>,
}

// ── the rules ──

/// Names that two operands share stand in one order.
fn in_one_order(operands: &[Passed]) -> bool {
    let named: Vec<&Dims> = operands.iter().filter_map(Passed::names).collect();
    named.iter().all(|one| {
        named.iter().all(|other| {
            let shared: Vec<&Dim> = one.iter().filter(|dim| other.contains(dim)).collect();
            let there: Vec<&Dim> = other.iter().filter(|dim| one.contains(dim)).collect();
            shared == there
        })
    })
}

/// No operand shares no name with those before it, where one side has I or J and the other knows none of
/// GT4Py's names.
fn are_related(operands: &[Passed]) -> bool {
    let mut before: Vec<Dim> = vec![];
    for names in operands.iter().filter_map(Passed::names) {
        let horizontal = |dims: &[Dim]| dims.contains(&Dim::I) || dims.contains(&Dim::J);
        let foreign = |dims: &[Dim]| dims.iter().all(|dim| matches!(dim, Dim::Named(_)));
        let shares = names.iter().any(|dim| before.contains(dim));
        let apart =
            (horizontal(names) && foreign(&before)) || (horizontal(&before) && foreign(names));
        if !before.is_empty() && !shares && apart {
            return false;
        }
        before.extend(names.iter().cloned());
    }
    true
}

/// The dims of a result of named operands: those of the first that has all; else in GT4Py's order if it
/// knows all; else those of the first, then what the others add.
fn dims_of_result(operands: &[Passed]) -> Vec<Dim> {
    let mut all: Vec<Dim> = vec![];
    for dim in operands.iter().filter_map(Passed::names).flatten() {
        if !all.contains(dim) {
            all.push(dim.clone());
        }
    }
    let has_all = |names: &&Dims| all.iter().all(|dim| names.contains(dim));
    if let Some(whole) = operands.iter().filter_map(Passed::names).find(has_all) {
        return whole.to_vec();
    }
    let place = |dim: &Dim| match dim {
        Dim::I => Some(0),
        Dim::J => Some(1),
        Dim::K => Some(2),
        Dim::Data(number) => Some(3 + u64::from(*number)),
        Dim::Named(_) => None,
    };
    if all.iter().all(|dim| place(dim).is_some()) {
        all.sort_by_key(place);
    }
    all
}

/// The extent of each dimension; `None` if two operands have different ones.
fn extents_of(dims: &[Dim], operands: &[Passed]) -> Option<Vec<i64>> {
    let extent = |dim: &Dim| {
        let mut all = operands.iter().filter_map(|one| {
            let axis = one.names()?.iter().position(|own| own == dim)?;
            Some(one.shape[axis])
        });
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    };
    dims.iter().map(extent).collect()
}

/// Axes of an array without names: by position if it has as many, else those of I, J and K.
fn without_names(own: &[i64], dims: &[Dim], shape: &[i64]) -> Option<Vec<Option<usize>>> {
    let three = ["I", "J", "K"].map(Dim::from_name);
    let axes: Vec<Option<usize>> = match own.len() {
        0 => vec![None; dims.len()],
        ndim if ndim == dims.len() => (0..ndim).map(Some).collect(),
        3 if dims.iter().all(|dim| three.contains(dim)) => {
            dims.iter().map(|dim| three.iter().position(|one| one == dim)).collect()
        }
        _ => return None,
    };
    fits(own, &axes, shape).then_some(axes)
}

/// Each axis has the extent of its dimension, or 1, as has an axis that is left out.
fn fits(own: &[i64], axes: &[Option<usize>], shape: &[i64]) -> bool {
    let left_out = (0..own.len()).filter(|&axis| !axes.contains(&Some(axis)));
    let placed = axes.iter().zip(shape).filter_map(|(axis, wanted)| Some((own[(*axis)?], *wanted)));
    left_out.into_iter().all(|axis| own[axis] == 1)
        && placed.into_iter().all(|(own, wanted)| own == wanted || own == 1)
}

/// As NumPy broadcasts.
fn by_position(operands: &[Passed]) -> Option<Model> {
    let ndim = operands.iter().map(|one| one.shape.len()).max().unwrap_or(0);
    let extent = |from_last: usize| {
        let own = |one: &Passed| one.shape.iter().rev().nth(from_last).copied().unwrap_or(1);
        let mut wide = operands.iter().map(own).filter(|&extent| extent != 1);
        let first = wide.next().unwrap_or(1);
        wide.all(|other| other == first).then_some(first)
    };
    let shape: Vec<i64> = (0..ndim).rev().map(extent).collect::<Option<_>>()?;
    let axes = |one: &Passed| -> Vec<Option<usize>> {
        (0..ndim).map(|at| (at + one.shape.len()).checked_sub(ndim)).collect()
    };
    // Placeholders, which are names that say nothing, stay those of the first storage that has as many.
    let mut storages = operands.iter().filter(|one| one.field.is_some() && one.shape.len() == ndim);
    let dims = storages.next().and_then(|one| one.field.as_ref()?.dims.clone());
    Some(Model { dims, shape, axes: operands.iter().map(axes).collect() })
}

fn onto(dims: Vec<Dim>, shape: Vec<i64>, operands: &[Passed]) -> Option<Model> {
    let axes = |one: &Passed| match one.names() {
        Some(own) => Some(dims.iter().map(|dim| own.iter().position(|one| one == dim)).collect()),
        None => without_names(&one.shape, &dims, &shape),
    };
    let axes = operands.iter().map(axes).collect::<Option<_>>()?;
    Some(Model { dims: Some(dims.into_iter().collect()), shape, axes })
}

fn joined(operands: &[Passed]) -> Option<Model> {
    if operands.iter().all(|one| one.names().is_none()) {
        return by_position(operands);
    }
    if !in_one_order(operands) || !are_related(operands) {
        return None;
    }
    let dims = dims_of_result(operands);
    let shape = extents_of(&dims, operands)?;
    onto(dims, shape, operands)
}

/// Operands on a target, which has all of their dimensions in the same order.
fn joined_within(target: &Passed, operands: &[Passed]) -> Option<Model> {
    let Some(own) = target.names() else {
        let found = joined(operands)?;
        let added = target.shape.len().checked_sub(found.shape.len())?;
        let behind = found.shape.iter().zip(&target.shape[added..]);
        let longer = |axes: Vec<_>| [vec![None; added], axes].concat();
        let axes = found.axes.into_iter().map(longer).collect();
        let all_fit = behind.into_iter().all(|(own, wanted)| own == wanted || *own == 1);
        return all_fit.then(|| Model { dims: None, shape: target.shape.clone(), axes });
    };
    let has = |one: &Passed| one.names().into_iter().flatten().all(|dim| own.contains(dim));
    let all = [std::slice::from_ref(target), operands].concat();
    if !operands.iter().all(has) || !in_one_order(&all) {
        return None;
    }
    extents_of(own, &all)?;
    onto(own.to_vec(), target.shape.clone(), operands)
}

/// The widest halo of the storages; unknown if one is unknown, or if it does not fit.
fn halo_of(model: &Model, operands: &[Passed]) -> Option<Halo> {
    let mut halo = vec![(0, 0); model.shape.len()];
    for (one, axes) in operands.iter().zip(&model.axes) {
        let Some(field) = &one.field else { continue };
        let own = field.halo.as_ref()?;
        for (at, axis) in axes.iter().enumerate() {
            let Some(axis) = *axis else { continue };
            if one.shape[axis] == model.shape[at] {
                halo[at] = (own[axis].0.max(halo[at].0), own[axis].1.max(halo[at].1));
            }
        }
    }
    let fits = halo.iter().zip(&model.shape).all(|((low, high), extent)| low + high <= *extent);
    let is_data =
        |at: usize| model.dims.as_ref().is_some_and(|dims| matches!(dims[at], Dim::Data(_)));
    let of_data = (0..halo.len()).any(|at| is_data(at) && halo[at] != (0, 0));
    (fits && !of_data).then(|| halo.into_iter().collect())
}

// ── the comparison ──

/// For each point of a result, two lists of axes name the same element of an operand.
fn name_the_same(shape: &[i64], own: &[i64], axes: [&[Option<usize>]; 2]) -> bool {
    let element = |point: &[i64], axes: &[Option<usize>]| {
        let mut index = Index::from_elem(0, own.len());
        for (at, axis) in point.iter().zip(axes) {
            if let Some(axis) = *axis {
                index[axis] = if own[axis] == 1 { 0 } else { *at };
            }
        }
        index
    };
    indices(shape).all(|point| element(&point, axes[0]) == element(&point, axes[1]))
}

fn compare(found: dlfield::Result<Joint>, model: Option<Model>, operands: &[Passed]) {
    let Some(model) = model else {
        assert!(found.is_err(), "{operands:?}\n{found:?}");
        return;
    };
    let found = found.unwrap_or_else(|error| panic!("{operands:?}\n{error}"));
    assert_eq!((&found.dims, &found.shape[..]), (&model.dims, &model.shape[..]), "{operands:?}");
    for ((one, axes), expected) in operands.iter().zip(&found.axes).zip(&model.axes) {
        assert_eq!(axes.len(), model.shape.len());
        assert!(
            name_the_same(&model.shape, &one.shape, [axes, expected]),
            "{axes:?} {expected:?} {operands:?}"
        );
    }
    assert_eq!(found.field.halo, halo_of(&model, operands), "{operands:?}");
    assert_eq!(found.field.check(&found.shape), Ok(()), "{operands:?}");
}

/// An assignment goes by name if both have names, in any order; else by position, where three axes beside
/// fewer dimensions are those of I, J and K.
fn assigned(value: &Passed, target: &Passed) -> Option<Vec<Option<usize>>> {
    let dims = |one: &Passed| one.field.as_ref().and_then(|field| field.dims.clone());
    let (own, shape) = (&value.shape, &target.shape);
    if let (Some(names), Some(wanted)) = (dims(value), dims(target)) {
        let has_all = names.iter().all(|dim| wanted.contains(dim));
        if has_all {
            let axes: Vec<_> =
                wanted.iter().map(|dim| names.iter().position(|one| one == dim)).collect();
            return fits(own, &axes, shape).then_some(axes);
        }
        if value.names().is_some() && target.names().is_some() {
            return None;
        }
    }
    let spatial = |dim: &Dim| matches!(dim, Dim::I | Dim::J | Dim::K);
    if let Some(wanted) = target.names()
        && value.names().is_none()
        && own.len() == 3
        && shape.len() < 3
        && wanted.iter().all(spatial)
    {
        return without_names(own, wanted, shape);
    }
    let axes: Vec<_> =
        (0..shape.len()).map(|at| (at + own.len()).checked_sub(shape.len())).collect();
    fits(own, &axes, shape).then_some(axes)
}

fn check_assigned(value: &Passed, target: &Passed) {
    let dims = |one: &'_ Passed| one.field.as_ref().and_then(|field| field.dims.clone());
    let (own_dims, dims) = (dims(value), dims(target));
    let found = place((&value.shape, own_dims.as_ref()), (&target.shape, dims.as_ref()));
    let Some(expected) = assigned(value, target) else {
        assert!(found.is_err(), "{value:?} {target:?}\n{found:?}");
        return;
    };
    let found = found.unwrap_or_else(|error| panic!("{value:?} {target:?}\n{error}"));
    assert!(
        name_the_same(&target.shape, &value.shape, [&found, &expected]),
        "{found:?} {expected:?} {value:?} {target:?}"
    );
}

fuzz_target!(|input: Input| {
    let Input { operands, target, extents, agree } = input;
    let passed = |one: Operand| one.passed(&extents, agree);
    let operands: Vec<Passed> = operands.into_iter().map(passed).collect();
    let target = target.passed(&extents, agree);
    let all: Vec<_> = operands.iter().map(Passed::as_operand).collect();
    compare(join(&all), joined(&operands), &operands);
    compare(join_within(target.as_operand(), &all), joined_within(&target, &operands), &operands);
    for value in &operands {
        check_assigned(value, &target);
    }
});

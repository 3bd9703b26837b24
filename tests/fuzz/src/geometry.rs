//! Layouts and what is selected of them, held against a list of the addresses of all elements: what a
//! layout says of itself, keys of integers and slices, orders of axes, broadcasting, and overlap.
#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use dlfield::fuzzed::{may_overlap, select};
use dlfield::{Item, Layout};
use fuzz::elements::{distance, distances, indices, permutation};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
struct Input {
    #[arbitrary(with = layout)]
    layout: Layout,
    #[arbitrary(with = layout)]
    other: Layout,
    /// Where the first element of the other one lies, from that of the first on.
    #[arbitrary(with = small)]
    apart: i64,
    #[arbitrary(with = key)]
    key: Vec<Item>,
    #[arbitrary(with = axes)]
    axes: Vec<Option<usize>>,
    #[arbitrary(with = range)]
    narrowed: (usize, i64, i64),
    #[arbitrary(with = shape)]
    shape: Vec<i64>,
}

fn small(input: &mut Unstructured<'_>) -> Result<i64> {
    input.int_in_range(-60..=60)
}

fn shape(input: &mut Unstructured<'_>) -> Result<Vec<i64>> {
    (0..input.int_in_range(0..=4)?).map(|_| input.int_in_range(0..=4)).collect()
}

/// A layout whose strides have no order, or that is dense in some order of its axes.
fn layout(input: &mut Unstructured<'_>) -> Result<Layout> {
    let shape = shape(input)?;
    let mut strides = vec![0; shape.len()];
    if input.arbitrary()? {
        strides.fill_with(|| input.int_in_range(-14..=14).unwrap_or(1));
    } else {
        let mut step = 1;
        for axis in permutation(input, shape.len())? {
            strides[axis] = step;
            step *= shape[axis].max(1);
        }
    }
    let item = input.int_in_range(1..=9)?;
    Ok(Layout::new(shape[..].into(), strides[..].into(), item).expect("a small layout"))
}

/// An index near the ends of an axis, or anywhere.
fn near(input: &mut Unstructured<'_>) -> Result<i64> {
    match input.ratio(7, 8)? {
        true => input.int_in_range(-6..=6),
        false => Ok(*input.choose(&[i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX])?),
    }
}

fn key(input: &mut Unstructured<'_>) -> Result<Vec<Item>> {
    let maybe = |input: &mut Unstructured<'_>| match input.arbitrary()? {
        true => near(input).map(Some),
        false => Ok(None),
    };
    let item = |input: &mut Unstructured<'_>| {
        Ok(match input.int_in_range(0..=7)? {
            0 | 1 => Item::At(near(input)?),
            2 => Item::NewAxis,
            3 => Item::Ellipsis,
            _ => Item::Slice { start: maybe(input)?, stop: maybe(input)?, step: maybe(input)? },
        })
    };
    (0..input.int_in_range(0..=6)?).map(|_| item(input)).collect()
}

fn axes(input: &mut Unstructured<'_>) -> Result<Vec<Option<usize>>> {
    let axis = |input: &mut Unstructured<'_>| match input.ratio(1, 4)? {
        true => Ok(None),
        false => input.int_in_range(0..=4).map(Some),
    };
    (0..input.int_in_range(0..=5)?).map(|_| axis(input)).collect()
}

fn range(input: &mut Unstructured<'_>) -> Result<(usize, i64, i64)> {
    Ok((input.int_in_range(0..=4)?, near(input)?, near(input)?))
}

// ── what a layout says of itself ──

fn check_layout(layout: &Layout) {
    let all = distances(layout);
    let item = i64::try_from(layout.itemsize()).expect("a small item");
    assert_eq!(layout.size(), all.len());
    let span = layout.span();
    let bytes = all.iter().min().map(|low| (*low, all.iter().max().unwrap_or(low) + item));
    assert_eq!((span.low as i64, span.high as i64), bytes.unwrap_or((0, 0)), "{layout:?}");
    let in_order = |all: &[i64]| all.iter().zip(0..).all(|(at, number)| *at == number * item);
    assert_eq!(layout.is_c_contiguous(), in_order(&all), "{layout:?}");
    let reversed: Vec<usize> = (0..layout.ndim()).rev().collect();
    let turned = layout.permute(&reversed).expect("a permutation");
    assert_eq!(layout.is_f_contiguous(), in_order(&distances(&turned)), "{layout:?}");
    let mut distinct = all.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(layout.overlaps_itself(), distinct.len() < all.len(), "{layout:?}");
    check_dense(layout, &distinct, &all);
}

/// Dense is what fills its span from the first element on, each place once. Only axes that step over
/// each other do so, for which no axis may be interleaved with another.
fn check_dense(layout: &Layout, sorted: &[i64], all: &[i64]) {
    let item = i64::try_from(layout.itemsize()).expect("a small item");
    let fills = sorted.len() == all.len();
    let fills = fills && sorted.iter().zip(0..).all(|(at, number)| *at == number * item);
    assert_eq!(layout.is_dense(), fills, "{layout:?}");
}

// ── what is selected ──

/// The indices of an axis that a slice of Python takes, one after the other.
fn sliced(extent: i64, start: Option<i64>, stop: Option<i64>, step: i64) -> Vec<i64> {
    let (extent, step) = (i128::from(extent), i128::from(step));
    let counted = |at: i64| if at < 0 { i128::from(at) + extent } else { i128::from(at) };
    let (first, last) = if step > 0 { (0, extent) } else { (extent - 1, -1) };
    let (low, high) = (first.min(last), first.max(last));
    let mut at = start.map_or(first, |at| counted(at).clamp(low, high));
    let stop = stop.map_or(last, |at| counted(at).clamp(low, high));
    let mut taken = vec![];
    while (step > 0 && at < stop) || (step < 0 && at > stop) {
        taken.push(i64::try_from(at).expect("an index of the axis"));
        at += step;
    }
    taken
}

/// Shape, and for each element the index in the layout that a key is for; `None` if it is refused.
fn selected(shape: &[i64], key: &[Item]) -> Option<(Vec<usize>, Vec<Vec<i64>>)> {
    let taking = key.iter().filter(|one| matches!(one, Item::At(_) | Item::Slice { .. })).count();
    let ellipses = key.iter().filter(|one| matches!(one, Item::Ellipsis)).count();
    let open = shape.len().checked_sub(taking).filter(|_| ellipses <= 1)?;
    let mut axes = shape.iter().copied();
    let (mut result, mut taken) = (vec![], vec![]);
    let mut keep = |taken: &mut Vec<Vec<i64>>, all: Vec<i64>| {
        result.push(all.len());
        taken.push(all);
    };
    for item in key {
        match *item {
            Item::At(at) => {
                let extent = axes.next()?;
                let counted = if at < 0 { i128::from(at) + i128::from(extent) } else { at.into() };
                taken.push(vec![(0..extent).find(|&one| i128::from(one) == counted)?]);
            }
            Item::Slice { step: Some(0), .. } => return None,
            Item::Slice { start, stop, step } => {
                keep(&mut taken, sliced(axes.next()?, start, stop, step.unwrap_or(1)));
            }
            Item::NewAxis => {}
            Item::Ellipsis => {
                axes.by_ref().take(open).for_each(|extent| keep(&mut taken, (0..extent).collect()));
            }
        }
    }
    axes.for_each(|extent| keep(&mut taken, (0..extent).collect()));
    let all = taken.iter().fold(vec![vec![]], |all: Vec<Vec<i64>>, one| {
        let longer = |index: &Vec<i64>| -> Vec<Vec<i64>> {
            one.iter().map(|at| [index.as_slice(), &[*at]].concat()).collect()
        };
        all.iter().flat_map(longer).collect()
    });
    Some((result, all))
}

fn check_select(layout: &Layout, key: &[Item]) {
    let expected = selected(layout.shape(), key);
    let Some((shape, all)) = expected else {
        assert!(select(layout, key).is_err(), "{layout:?} {key:?}");
        return;
    };
    let (part, moved) = select(layout, key).expect("a key that the model takes");
    let is_new = |item: &&Item| matches!(item, Item::NewAxis);
    assert_eq!(part.ndim(), shape.len() + key.iter().filter(is_new).count(), "{key:?}");
    let expected: Vec<i64> = all.iter().map(|index| distance(layout, index)).collect();
    let found: Vec<i64> = distances(&part).iter().map(|at| at + moved as i64).collect();
    assert_eq!(found, expected, "{layout:?} {key:?}");
    assert_eq!(extents_but_new(part.shape(), key, layout.ndim()), shape, "{key:?}");
}

/// The extents of a result without its new axes, which have extent 1.
fn extents_but_new(result: &[i64], key: &[Item], ndim: usize) -> Vec<usize> {
    let taking = key.iter().filter(|one| matches!(one, Item::At(_) | Item::Slice { .. })).count();
    let (mut extents, mut all) = (vec![], result.iter().map(|&extent| extent.unsigned_abs()));
    for item in key {
        match item {
            Item::At(_) => {}
            Item::Slice { .. } => extents.extend(all.next()),
            Item::NewAxis => assert_eq!(all.next(), Some(1), "{key:?}"),
            Item::Ellipsis => extents.extend(all.by_ref().take(ndim - taking)),
        }
    }
    extents.extend(all);
    extents.into_iter().map(|extent| usize::try_from(extent).expect("a small extent")).collect()
}

fn check_narrow(layout: &Layout, (axis, start, length): (usize, i64, i64)) {
    let range = i128::from(start)..i128::from(start) + i128::from(length.max(0));
    let inside = |&extent: &i64| range.start >= 0 && range.end <= extent.into() && length >= 0;
    if !layout.shape().get(axis).is_some_and(inside) {
        assert!(layout.narrow(axis, start, length).is_err(), "{layout:?} {axis} {start} {length}");
        return;
    }
    let (part, moved) = layout.narrow(axis, start, length).expect("a range inside");
    let kept = indices(layout.shape()).filter(|index| range.contains(&index[axis].into()));
    let expected: Vec<i64> = kept.map(|index| distance(layout, &index)).collect();
    let found: Vec<i64> = distances(&part).iter().map(|at| at + moved as i64).collect();
    assert_eq!(found, expected, "{layout:?} {axis} {start} {length}");
}

// ── other orders, other shapes ──

/// An axis may be left out if it has extent 1, and none may come twice.
fn check_align(layout: &Layout, axes: &[Option<usize>]) {
    let known = axes.iter().flatten().all(|&axis| axis < layout.ndim());
    let times = |axis: usize| axes.iter().filter(|one| **one == Some(axis)).count();
    let fits =
        |(axis, &extent): (usize, &i64)| times(axis) == 1 || (times(axis) == 0 && extent == 1);
    if !known || !layout.shape().iter().enumerate().all(fits) {
        assert!(layout.align(axes).is_err(), "{layout:?} {axes:?}");
        return;
    }
    let aligned = layout.align(axes).expect("each axis once");
    for index in indices(aligned.shape()) {
        let mut own = vec![0; layout.ndim()];
        for (axis, &at) in axes.iter().zip(&index) {
            match axis {
                Some(axis) => own[*axis] = at,
                None => assert_eq!(at, 0, "a new axis has extent 1"),
            }
        }
        assert_eq!(distance(&aligned, &index), distance(layout, &own), "{layout:?} {axes:?}");
    }
    let extents = axes.iter().map(|axis| axis.map_or(1, |axis| layout.shape()[axis]));
    assert!(extents.eq(aligned.shape().iter().copied()), "{layout:?} {axes:?}");
}

/// As an assignment of NumPy's: extents count from the last axis on, and surplus ones are 1.
fn check_broadcast(layout: &Layout, shape: &[i64]) {
    let own = layout.shape();
    let behind = own.iter().rev().zip(shape.iter().rev());
    let surplus = own.iter().rev().skip(shape.len()).all(|&extent| extent == 1);
    if !surplus || !behind.clone().all(|(own, wanted)| own == wanted || *own == 1) {
        assert!(layout.broadcast_to(shape).is_err(), "{layout:?} {shape:?}");
        return;
    }
    let wide = layout.broadcast_to(shape).expect("a shape that NumPy takes");
    assert_eq!(wide.shape(), shape);
    for index in indices(shape) {
        let from_last = index.iter().rev().chain(std::iter::repeat(&0));
        let mut own_index: Vec<i64> =
            own.iter().rev().zip(from_last).map(|(&extent, &at)| at.min(extent - 1)).collect();
        own_index.reverse();
        assert_eq!(distance(&wide, &index), distance(layout, &own_index), "{layout:?} {shape:?}");
    }
}

// ── overlap ──

const START: usize = 4096;

fn check_overlap(layout: &Layout, other: &Layout, apart: i64) {
    let bytes = |layout: &Layout, from: i64| -> Vec<i64> {
        let item = i64::try_from(layout.itemsize()).expect("a small item");
        let mut all: Vec<i64> =
            distances(layout).iter().flat_map(|at| from + at..from + at + item).collect();
        all.sort_unstable();
        all
    };
    let at = START.checked_add_signed(isize::try_from(apart).expect("near")).expect("near");
    let own = bytes(layout, 0);
    let shared = bytes(other, apart).iter().any(|byte| own.binary_search(byte).is_ok());
    let found = may_overlap((layout, START), (other, at));
    assert_eq!(found, shared, "{layout:?} {other:?} {apart}");
    assert_eq!(may_overlap((other, at), (layout, START)), shared, "the other way round");
}

fuzz_target!(|input: Input| {
    let Input { layout, other, apart, key, axes, narrowed, shape } = input;
    check_layout(&layout);
    check_select(&layout, &key);
    check_narrow(&layout, narrowed);
    check_align(&layout, &axes);
    check_broadcast(&layout, &shape);
    check_overlap(&layout, &other, apart);
});

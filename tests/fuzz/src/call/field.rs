//! A field of a stencil, and its argument.

use arbitrary::{Result, Unstructured};
use dlfield::fuzzed::{Given, Reach, Uses};
use dlfield::{Dim, Dims, Extents, Halo, Item, Managed, Storage};

use crate::elements::permutation;

const NAMES: [&str; 4] = ["I", "J", "K", "0"];

/// Number of elements along the data dimension.
pub const DATA: i64 = 2;

/// A field of a stencil, and its argument.
#[derive(Debug)]
pub struct Field {
    /// Its dimensions, as numbers of names.
    pub dims: Vec<usize>,
    pub reads: Option<[Reach; 3]>,
    pub writes: Option<[Reach; 3]>,
    pub complete: bool,
    pub pointwise: bool,
    /// Extents along I, J, K.
    pub extents: [i64; 3],
    pub halo: Option<[(i64, i64); 3]>,
    pub origin: Option<[i64; 3]>,
    /// True if the argument gives the origin, and not the call.
    pub own_origin: bool,
    /// Its own axes in another order; named, or passed without names.
    order: Vec<usize>,
    named: bool,
    /// Its first point in the memory that some arguments share.
    shared: Option<[i64; 3]>,
}

pub fn maybe<T>(
    input: &mut Unstructured<'_>,
    odds: (u8, u8),
    make: impl Fn(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Option<T>> {
    if input.ratio(odds.0, odds.1)? { make(input).map(Some) } else { Ok(None) }
}

pub fn three<T>(
    input: &mut Unstructured<'_>,
    make: impl Fn(&mut Unstructured<'_>) -> Result<T>,
) -> Result<[T; 3]> {
    Ok([make(input)?, make(input)?, make(input)?])
}

pub fn fields(input: &mut Unstructured<'_>) -> Result<Vec<Field>> {
    (0..input.int_in_range(1..=3)?).map(|_| field(input)).collect()
}

fn field(input: &mut Unstructured<'_>) -> Result<Field> {
    let dims: Vec<usize> = match input.int_in_range(0..=9)? {
        0 => vec![2],
        1 => vec![0, 1],
        2 => vec![0, 1, 2, 3],
        3 => permutation(input, 3)?,
        _ => vec![0, 1, 2],
    };
    let order = permutation(input, dims.len())?;
    let (access, pointwise) = (input.int_in_range(0..=9)?, input.ratio(1, 2)?);
    let mut along = |wanted: bool| -> Result<Option<[Reach; 3]>> {
        let one = |input: &mut Unstructured<'_>| if pointwise { Ok([0; 6]) } else { reach(input) };
        wanted.then(|| three(input, one)).transpose()
    };
    let (reads, writes) = (along(access < 6)?, along((5..9).contains(&access))?);
    Ok(Field {
        dims,
        reads,
        writes,
        complete: input.ratio(7, 8)?,
        pointwise,
        extents: three(input, |input| input.int_in_range(0..=7))?,
        halo: maybe(input, (15, 16), halo)?,
        origin: maybe(input, (1, 2), |input| three(input, |input| input.int_in_range(-2..=4)))?,
        own_origin: input.ratio(1, 4)?,
        order,
        named: input.ratio(3, 4)?,
        shared: maybe(input, (1, 3), |input| three(input, |input| input.int_in_range(0..=3)))?,
    })
}

fn reach(input: &mut Unstructured<'_>) -> Result<Reach> {
    let mut reach = [input.int_in_range(-1..=2)?, input.int_in_range(-1..=2)?, 0, 0, 0, 0];
    if input.ratio(1, 4)? {
        for number in &mut reach[2..] {
            *number = input.int_in_range(-2..=4)?;
        }
    }
    Ok(reach)
}

fn halo(input: &mut Unstructured<'_>) -> Result<[(i64, i64); 3]> {
    match input.ratio(1, 2)? {
        true => Ok([(0, 0); 3]),
        false => three(input, |input| Ok((input.int_in_range(0..=2)?, input.int_in_range(0..=2)?))),
    }
}

impl Field {
    /// The axes of the iteration that it has, in the declared order.
    pub fn spatial(&self) -> impl Iterator<Item = usize> {
        self.dims.iter().copied().filter(|&dim| dim < 3)
    }

    pub fn is_used(&self) -> bool {
        self.reads.is_some() || self.writes.is_some()
    }

    pub fn uses(&self) -> Uses {
        let along = |reach: [Reach; 3]| self.spatial().map(|axis| reach[axis]).collect();
        let of_data = self.dims.iter().filter(|&&dim| dim == 3);
        Uses {
            dims: self.dims.iter().map(|&dim| NAMES[dim].into()).collect(),
            data_shape: of_data.map(|_| DATA).collect(),
            reads: self.reads.map(along),
            writes: self.writes.map(along),
            complete: self.complete,
            pointwise: self.pointwise,
        }
    }

    /// Extents in the declared order.
    pub fn shape(&self) -> Vec<i64> {
        self.dims.iter().map(|&dim| self.extents.get(dim).copied().unwrap_or(DATA)).collect()
    }

    /// Memory of its own, or a part of the memory that some share, with the axes in the declared order.
    fn memory(&self, all: &Storage) -> Managed {
        let shape = self.shape();
        match self.shared {
            None => Storage::builder(shape).zeros::<f64>().expect("small memory").managed().clone(),
            Some(first) => {
                let part = |dim: usize| match self.dims.contains(&dim) {
                    true => {
                        let (from, extent) =
                            (first.get(dim).copied().unwrap_or(0), self.extent(dim));
                        Item::from(from..from + extent)
                    }
                    false => Item::At(0),
                };
                let part = all.select(&[0, 1, 2, 3].map(part)).expect("inside");
                let place = |dim: &usize| self.dims.iter().filter(|other| *other < dim).count();
                let axes: Vec<usize> = self.dims.iter().map(place).collect();
                part.permute(&axes).expect("each axis once").managed().clone()
            }
        }
    }

    fn extent(&self, dim: usize) -> i64 {
        self.extents.get(dim).copied().unwrap_or(DATA)
    }

    /// Without names the axes stand in the declared order.
    pub fn order(&self) -> Vec<usize> {
        if self.named { self.order.clone() } else { (0..self.dims.len()).collect() }
    }

    pub fn halo_along(&self, dim: usize) -> (i64, i64) {
        let Some(halo) = self.halo.filter(|_| dim < 3) else { return (0, 0) };
        let (extent, (low, high)) = (self.extents[dim], halo[dim]);
        let low = low.min(extent);
        (low, high.min(extent - low))
    }

    pub fn given(&self, all: &Storage) -> Given {
        let order = self.order();
        let own: Vec<usize> = order.iter().map(|&at| self.dims[at]).collect();
        let names: Dims = own.iter().map(|&dim| Dim::from_name(NAMES[dim])).collect();
        let halo: Halo = own.iter().map(|&dim| self.halo_along(dim)).collect();
        Given {
            managed: self.memory(all).permute(&order).expect("a permutation"),
            dims: self.named.then_some(names),
            halo: self.halo.map(|_| halo),
            origin: self.origin_by_dims().filter(|_| self.own_origin),
        }
    }

    pub fn origin_by_dims(&self) -> Option<Extents> {
        let origin = self.origin?;
        Some(self.dims.iter().map(|&dim| origin.get(dim).copied().unwrap_or(0)).collect())
    }

    pub fn carries_halo(&self) -> bool {
        self.spatial().any(|axis| self.halo_along(axis) != (0, 0))
    }
}

//! What an array claims: mostly what is true of a few KiB that never move.

use std::sync::OnceLock;

use arbitrary::{Arbitrary, Result, Unstructured};

use crate::elements::permutation;

/// Bytes that true claims are about.
pub const ARENA: i64 = 4096;

/// Those bytes: no two neighbours are alike.
#[must_use]
pub fn arena() -> &'static [u64] {
    static WORDS: OnceLock<Vec<u64>> = OnceLock::new();
    WORDS.get_or_init(|| (1..=512_u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect())
}

/// The address of the first of them.
fn start() -> i64 {
    i64::try_from(arena().as_ptr().addr()).expect("an address of a user's memory")
}

/// NumPy's name, the words of the array interface and of PEP 3118, and bytes.
const TYPES: [(&str, &str, &str, i64); 9] = [
    ("float64", "<f8", "d", 8),
    ("float32", "<f4", "f", 4),
    ("int64", "<i8", "q", 8),
    ("int32", "<i4", "i", 4),
    ("int16", "<i2", "h", 2),
    ("uint8", "|u1", "B", 1),
    ("bool", "|b1", "?", 1),
    ("complex128", "<c16", "Zd", 16),
    ("float16", "<f2", "e", 2),
];

#[derive(Debug, Clone)]
pub struct Claims {
    pub shape: Vec<i64>,
    /// In bytes; `None` for C order.
    pub strides: Option<Vec<i64>>,
    pub name: String,
    pub typestr: String,
    pub format: String,
    pub itemsize: i64,
    pub address: i64,
    pub readonly: bool,
}

impl<'a> Arbitrary<'a> for Claims {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        let (name, typestr, format, itemsize) = *input.choose(&TYPES)?;
        let shape = extents(input)?;
        let strides = match input.ratio(1, 3)? {
            true => None,
            false => Some(strides(input, &shape, itemsize)?),
        };
        let mut claims = Self {
            shape,
            strides,
            name: name.into(),
            typestr: typestr.into(),
            format: format.into(),
            itemsize,
            address: 0,
            readonly: input.ratio(1, 4)?,
        };
        claims.address = address(input, &claims)?;
        if input.ratio(1, 10)? {
            claims.name = input.arbitrary()?;
            claims.typestr = input.arbitrary()?;
            claims.format = input.arbitrary()?;
        }
        Ok(claims)
    }
}

fn extents(input: &mut Unstructured<'_>) -> Result<Vec<i64>> {
    let most = if input.ratio(1, 20)? { 70 } else { 4 };
    let extent = |input: &mut Unstructured<'_>| match input.ratio(1, 20)? {
        true => input.arbitrary(),
        false => input.int_in_range(0..=5),
    };
    (0..input.int_in_range(0..=most)?).map(|_| extent(input)).collect()
}

/// Those of some order of the axes, with padding; some are anything.
fn strides(input: &mut Unstructured<'_>, shape: &[i64], itemsize: i64) -> Result<Vec<i64>> {
    let mut all = vec![0; shape.len()];
    let mut step = itemsize;
    for axis in permutation(input, shape.len())? {
        all[axis] = match input.int_in_range(0..=20)? {
            0 => input.arbitrary()?,
            1 => 0,
            2 => input.int_in_range(-64..=64)?,
            3..5 => step.wrapping_neg(),
            _ => step,
        };
        let padding = if input.ratio(1, 4)? { input.int_in_range(0..=3)? * itemsize } else { 0 };
        step = step.wrapping_mul(shape[axis].max(1)).wrapping_add(padding);
    }
    if input.ratio(1, 30)? {
        all.push(step);
    }
    Ok(all)
}

fn address(input: &mut Unstructured<'_>, claims: &Claims) -> Result<i64> {
    if input.ratio(1, 20)? {
        return input.arbitrary();
    }
    let low = claims.span().map_or(0, |(low, _)| i64::try_from(low).unwrap_or(0));
    let shift = if input.ratio(1, 5)? { input.int_in_range(0..=64)? } else { 0 };
    Ok(start().wrapping_sub(low).wrapping_add(shift))
}

impl Claims {
    /// The strides in bytes; `None` for those that no array has.
    #[must_use]
    pub fn byte_strides(&self) -> Option<Vec<i128>> {
        if let Some(strides) = &self.strides {
            let fits = strides.len() == self.shape.len();
            return fits.then(|| strides.iter().map(|&stride| stride.into()).collect());
        }
        let mut strides = vec![0; self.shape.len()];
        let mut step = i128::from(self.itemsize);
        for (stride, &extent) in strides.iter_mut().zip(&self.shape).rev() {
            *stride = step;
            step = step.checked_mul(extent.max(1).into())?;
        }
        Some(strides)
    }

    /// As `byte_strides`; `None` also for those beyond 64 bits.
    #[must_use]
    pub fn narrow_strides(&self) -> Option<Vec<i64>> {
        self.byte_strides()?.into_iter().map(|stride| i64::try_from(stride).ok()).collect()
    }

    /// The bytes of all elements.
    #[must_use]
    pub fn bytes(&self) -> Option<i64> {
        let all = self.shape.iter().try_fold(1, |all: i64, &extent| all.checked_mul(extent));
        all?.checked_mul(self.itemsize)
    }

    /// The number of elements, with extents of 0 counted as 1.
    fn elements(&self) -> Option<i64> {
        self.shape.iter().try_fold(1, |all: i64, &extent| all.checked_mul(extent.max(1)))
    }

    /// The first and the last byte from the first element on; `None` for an impossible array.
    fn span(&self) -> Option<(i128, i128)> {
        let mut span = (0_i128, i128::from(self.itemsize) - 1);
        for (&extent, stride) in self.shape.iter().zip(self.byte_strides()?) {
            let reach = stride.checked_mul(i128::from(extent).max(1) - 1)?;
            span = (span.0.checked_add(reach.min(0))?, span.1.checked_add(reach.max(0))?);
        }
        Some(span)
    }

    /// True if each byte that is claimed is one of the arena.
    #[must_use]
    pub fn are_true(&self) -> bool {
        let own = (&*self.name, &*self.typestr, &*self.format, self.itemsize);
        let first = i128::from(self.address) - i128::from(start());
        TYPES.contains(&own)
            && self.shape.len() <= 64
            && self.shape.iter().all(|&extent| extent >= 0)
            && self.elements().is_some_and(|elements| elements <= ARENA)
            && self
                .span()
                .is_some_and(|(low, high)| first + low >= 0 && first + high < i128::from(ARENA))
    }

    /// True if each element lies at a multiple of its size from the first byte of the arena.
    #[must_use]
    pub fn are_aligned(&self) -> bool {
        let aligned = |number: i128| number % i128::from(self.itemsize) == 0;
        aligned(i128::from(self.address) - i128::from(start()))
            && self.byte_strides().is_some_and(|all| all.into_iter().all(aligned))
    }

    /// The bytes of all elements of a true claim, in C order.
    #[must_use]
    pub fn values(&self) -> Vec<u8> {
        let strides = self.byte_strides().expect("true claims");
        if self.shape.contains(&0) {
            return vec![];
        }
        let first = i128::from(self.address) - i128::from(start());
        let axes = self.shape.iter().zip(strides);
        let places = axes.fold(vec![first], |all, (&extent, stride)| {
            let along = |from: i128| (0..extent).map(move |at| from + i128::from(at) * stride);
            all.into_iter().flat_map(along).collect()
        });
        let bytes: Vec<u8> = arena().iter().flat_map(|word| word.to_ne_bytes()).collect();
        let size = usize::try_from(self.itemsize).expect("a small item");
        let element = |place: i128| {
            let place = usize::try_from(place).expect("inside");
            bytes[place..place + size].to_vec()
        };
        places.into_iter().flat_map(element).collect()
    }
}

//! Words: what each GT4Py backend wants of a field: order of the dimensions, alignment, device.
//!
//! A layout follows the *meaning* of each dimension (GDP-3, table of default layouts): `gtx86`
//! wants K contiguous whether the dims are IJK or KJI. Data dimensions come outermost, as in
//! GT4Py. `"C"` and `"F"` go by position instead, as NumPy's `order` does.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::field::{Dim, Dims};
use crate::layout::Extents;

/// How a preset ranks the dimensions; the highest rank is contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// By position: the last dimension is contiguous.
    C,
    /// By position: the first dimension is contiguous.
    F,
    /// By meaning: the ranks of I, J and K among each other.
    Ijk(u8, u8, u8),
}

/// Layout, alignment and device that suit one backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The name it is asked for by.
    pub name: &'static str,
    order: Order,
    items: usize,
    /// Whether the backend computes on a GPU.
    pub gpu: bool,
}

const fn preset(name: &'static str, order: Order, items: usize, gpu: bool) -> Preset {
    Preset { name, order, items, gpu }
}

/// GT4Py's layout registry, the names of GDP-3, and NumPy's two orders.
const PRESETS: [Preset; 15] = [
    preset("C", Order::C, 1, false),
    preset("F", Order::F, 1, false),
    preset("numpy", Order::Ijk(0, 1, 2), 1, false),
    preset("debug", Order::Ijk(0, 1, 2), 1, false),
    preset("gt:cpu_kfirst", Order::Ijk(0, 1, 2), 1, false),
    preset("gt:cpu_ifirst", Order::Ijk(2, 1, 0), 1, false),
    preset("gt:gpu", Order::Ijk(2, 1, 0), 32, true),
    preset("dace:cpu", Order::Ijk(1, 2, 0), 1, false),
    preset("dace:cpu_kfirst", Order::Ijk(0, 1, 2), 1, false),
    preset("dace:cpu_KJI", Order::Ijk(2, 1, 0), 1, false),
    preset("dace:gpu", Order::Ijk(2, 1, 0), 1, true),
    preset("dace:gpu_IJK", Order::Ijk(0, 1, 2), 1, true),
    preset("gtx86", Order::Ijk(0, 1, 2), 1, false),
    preset("gtmc", Order::Ijk(0, 2, 1), 8, false),
    preset("gtcuda", Order::Ijk(2, 1, 0), 32, true),
];

impl Preset {
    /// Looks a preset up by name.
    ///
    /// # Errors
    /// [`Error::Argument`] that lists the known names.
    pub fn from_name(name: &str) -> Result<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| {
            let known: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
            Error::Argument(format!("preset: expected one of {}, got '{name}'", known.join(", ")))
        })
    }

    /// Alignment in bytes of the aligned element for items of `itemsize` bytes.
    #[must_use]
    pub fn alignment(&self, itemsize: usize) -> usize {
        if self.items > 1 { self.items.saturating_mul(itemsize) } else { 1 }
    }

    /// Rank of each dimension (0 = largest stride). Without dims, I, J, K, 0, 1, ... are assumed.
    #[must_use]
    pub fn layout(&self, ndim: usize, dims: Option<&[Dim]>) -> Extents {
        let (i, j, k) = match self.order {
            Order::C => return (0_i64..).take(ndim).collect(),
            Order::F => {
                return (0_i64..).take(ndim).collect::<Extents>().into_iter().rev().collect();
            }
            Order::Ijk(i, j, k) => (i, j, k),
        };
        let assumed = default_dims(ndim);
        let dims = dims.unwrap_or(&assumed);
        // Outermost first: data dimensions by number, other names by position, then I, J, K.
        let weight = |(axis, dim): (usize, &Dim)| match dim {
            Dim::Data(number) => (0, u64::from(*number)),
            Dim::Named(_) => (1, axis as u64),
            Dim::I => (2, u64::from(i)),
            Dim::J => (2, u64::from(j)),
            Dim::K => (2, u64::from(k)),
        };
        let weights: SmallVec<[(u8, u64); 6]> = dims.iter().enumerate().map(weight).collect();
        let before = |own| weights.iter().filter(|weight| *weight < own).count();
        weights.iter().map(|own| i64::try_from(before(own)).unwrap_or(0)).collect()
    }
}

/// I, J, K and then data dimensions, which is what GT4Py assumes of a field without names.
#[must_use]
pub(crate) fn default_dims(ndim: usize) -> Dims {
    [Dim::I, Dim::J, Dim::K].into_iter().chain((0..).map(Dim::Data)).take(ndim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(name: &str, dims: &[&str]) -> Vec<i64> {
        let dims: Dims = dims.iter().map(|name| Dim::from_name(name)).collect();
        Preset::from_name(name).unwrap().layout(dims.len(), Some(&dims)).to_vec()
    }

    #[test]
    fn the_layouts_are_those_of_gdp_3() {
        for (name, ijk, kji) in [
            ("F", [2, 1, 0], [2, 1, 0]),
            ("C", [0, 1, 2], [0, 1, 2]),
            ("gtx86", [0, 1, 2], [2, 1, 0]),
            ("gtcuda", [2, 1, 0], [0, 1, 2]),
        ] {
            assert_eq!(layout(name, &["I", "J", "K"]), ijk, "{name}");
            assert_eq!(layout(name, &["K", "J", "I"]), kji, "{name}");
        }
    }

    #[test]
    fn data_dimensions_are_outermost_and_missing_ones_close_the_gap() {
        assert_eq!(layout("gt:cpu_ifirst", &["I", "J", "K", "0", "1"]), [4, 3, 2, 0, 1]);
        assert_eq!(layout("dace:cpu", &["I", "K"]), [1, 0]);
        assert_eq!(layout("dace:cpu", &["J", "K"]), [1, 0]);
        assert_eq!(layout("gt:cpu_kfirst", &["I", "J", "0"]), [1, 2, 0]);
    }

    #[test]
    fn without_dims_the_order_of_gt4py_is_assumed() {
        let preset = Preset::from_name("gt:cpu_ifirst").unwrap();
        assert_eq!(preset.layout(4, None).as_slice(), [3, 2, 1, 0]);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = Preset::from_name("gt:cpu").unwrap_err().to_string();
        assert!(error.contains("gt:cpu_kfirst") && error.contains("got 'gt:cpu'"), "{error}");
    }
}

//! Presets, and the table of those that dlfield knows.
//!
//! A layout follows the *meaning* of each dimension (GDP-3, table of default layouts): `gtx86`
//! wants K contiguous whether the dims are IJK or KJI. Data dimensions come outermost, as in
//! GT4Py. `"C"` and `"F"` go by position instead, as NumPy's `order` does.
use smallvec::SmallVec;

use crate::device::Target;
use crate::field::{Dim, Dims};
use crate::layout::Extents;

/// How a preset ranks the dimensions; the highest rank is contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PresetOrder {
    /// By position: the last dimension is contiguous.
    C,
    /// By position: the first dimension is contiguous.
    F,
    /// By meaning: the ranks of I, J and K among each other.
    Ijk(u8, u8, u8),
    /// The same, with data dimensions innermost.
    IjkThenData(u8, u8, u8),
}

/// The code that a backend makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    /// Python, which reads any memory that NumPy reads.
    Numpy,
    /// Compiled for the host.
    Host,
    /// Compiled for a GPU.
    Gpu,
}

/// Layout, alignment and device that suit one backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Its name as users write it.
    pub name: &'static str,
    order: PresetOrder,
    items: usize,
    /// True if the backend computes on a GPU.
    pub gpu: bool,
    /// True if the backend is compiled and reads memory as items of its type, which must be
    /// aligned; others read any memory.
    pub typed: bool,
}

pub(super) const fn preset(
    name: &'static str,
    order: PresetOrder,
    items: usize,
    code: Code,
) -> Preset {
    let (gpu, typed) = (matches!(code, Code::Gpu), !matches!(code, Code::Numpy));
    Preset { name, order, items, gpu, typed }
}

/// GT4Py's layout registry, the names of GDP-3, and NumPy's two orders.
pub(super) static PRESETS: [Preset; 15] = [
    preset("C", PresetOrder::C, 1, Code::Host),
    preset("F", PresetOrder::F, 1, Code::Host),
    preset("numpy", PresetOrder::Ijk(0, 1, 2), 1, Code::Numpy),
    preset("debug", PresetOrder::Ijk(0, 1, 2), 1, Code::Numpy),
    preset("gt:cpu_kfirst", PresetOrder::Ijk(0, 1, 2), 1, Code::Host),
    preset("gt:cpu_ifirst", PresetOrder::Ijk(2, 1, 0), 1, Code::Host),
    preset("gt:gpu", PresetOrder::Ijk(2, 1, 0), 32, Code::Gpu),
    preset("dace:cpu", PresetOrder::Ijk(1, 2, 0), 1, Code::Host),
    preset("dace:cpu_kfirst", PresetOrder::Ijk(0, 1, 2), 1, Code::Host),
    preset("dace:cpu_KJI", PresetOrder::Ijk(2, 1, 0), 1, Code::Host),
    preset("dace:gpu", PresetOrder::Ijk(2, 1, 0), 1, Code::Gpu),
    preset("dace:gpu_IJK", PresetOrder::Ijk(0, 1, 2), 1, Code::Gpu),
    preset("gtx86", PresetOrder::Ijk(0, 1, 2), 1, Code::Host),
    preset("gtmc", PresetOrder::Ijk(0, 2, 1), 8, Code::Host),
    preset("gtcuda", PresetOrder::Ijk(2, 1, 0), 32, Code::Gpu),
];

impl Preset {
    /// The kind of device that the backend computes on. NumPy's orders "C" and "F" are for any
    /// device.
    #[must_use]
    pub fn target(&self) -> Option<Target> {
        match self.order {
            PresetOrder::C | PresetOrder::F => None,
            _ if self.gpu => Some(Target::Gpu(None)),
            _ => Some(Target::Host),
        }
    }

    /// True for "C" and "F", which order dimensions by their position, whatever their names.
    pub(crate) fn is_by_position(&self) -> bool {
        matches!(self.order, PresetOrder::C | PresetOrder::F)
    }

    /// Alignment in bytes of the aligned element for items of `itemsize` bytes.
    #[must_use]
    pub fn alignment(&self, itemsize: usize) -> usize {
        if self.items > 1 { self.items.saturating_mul(itemsize) } else { 1 }
    }

    /// Rank of each dimension (0 = largest stride). Without dims, I, J, K, 0, 1, ... are assumed.
    #[must_use]
    pub fn layout(&self, ndim: usize, dims: Option<&[Dim]>) -> Extents {
        let by_position = (0_i64..).take(ndim);
        let (i, j, k) = match self.order {
            PresetOrder::C => return by_position.collect(),
            PresetOrder::F => return by_position.collect::<Extents>().into_iter().rev().collect(),
            PresetOrder::Ijk(i, j, k) | PresetOrder::IjkThenData(i, j, k) => (i, j, k),
        };
        let data_inside = matches!(self.order, PresetOrder::IjkThenData(..));
        let assumed = default_dims(ndim);
        let dims = dims.unwrap_or(&assumed);
        // Outermost first: data dimensions by number, other names by position, then I, J, K.
        let weight = |(axis, dim): (usize, &Dim)| match dim {
            Dim::Data(number) if data_inside => (3, u64::from(*number)),
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

    fn found(name: &str) -> &'static Preset {
        PRESETS.iter().find(|preset| preset.name == name).unwrap()
    }

    fn layout(name: &str, dims: &[&str]) -> Vec<i64> {
        let dims: Dims = dims.iter().map(|name| Dim::from_name(name)).collect();
        found(name).layout(dims.len(), Some(&dims)).to_vec()
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
        assert_eq!(found("gt:cpu_ifirst").layout(4, None).as_slice(), [3, 2, 1, 0]);
    }
}

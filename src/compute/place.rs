//! Where the result of a reduction goes in an output of the caller's, which may have more dimensions.

use pyo3::prelude::*;
use smallvec::SmallVec;

use super::outputs::{Output, join_operands};
use crate::field::{Axes, Operand, Reduced};
use crate::layout::Step;
use crate::managed::Managed;
use crate::python::numpy::array_over;
use crate::storage::repeat;

/// The axes of an output.
#[derive(Default)]
pub(super) struct Place {
    /// The axis of the result for each axis of the output; empty if they are the same.
    axes: Axes,
    /// The axes of the output along which the result is repeated.
    repeated: SmallVec<[usize; 4]>,
}

impl Place {
    pub(super) fn of(
        operand: Operand<'_>,
        reduced: &Reduced,
        outputs: &[Option<Output<'_>>],
    ) -> PyResult<Self> {
        let shape = reduced.shape(operand.shape);
        let field = operand.field.map(|field| reduced.field(field, &[]));
        let result = Operand { shape: &shape, field: field.as_ref() };
        let joined = join_operands(&[result], outputs)?;
        let Some(axes) = joined.axes.first() else { return Ok(Self::default()) };
        let extent = |axis: &Option<usize>| axis.and_then(|axis| shape.get(axis).copied());
        let is_repeated = |(axis, wanted): (&Option<usize>, &i64)| extent(axis) != Some(*wanted);
        let repeated = axes.iter().zip(&joined.shape).map(is_repeated).enumerate();
        let repeated = repeated.filter_map(|(at, is_repeated)| is_repeated.then_some(at)).collect();
        let is_whole = axes.iter().copied().eq((0..shape.len()).map(Some));
        Ok(Self { axes: if is_whole { Axes::new() } else { axes.clone() }, repeated })
    }

    /// True if the output has no element.
    pub(super) fn is_empty(&self, output: &Output<'_>) -> bool {
        let Some((_, memory)) = output.storage() else { return false };
        let extents = memory.layout().shape();
        self.repeated.iter().any(|&axis| extents.get(axis) == Some(&0))
    }

    /// The array that NumPy writes: the first point along what is repeated.
    pub(super) fn first<'py>(
        &self,
        py: Python<'py>,
        output: &Output<'py>,
        what: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some((_, memory)) = output.storage() else { return output.value(what) };
        if self.repeated.is_empty() && self.axes.is_empty() {
            return output.value(what);
        }
        let first = |part: Managed, &axis: &usize| part.narrow(axis, 0, 1);
        let part = self.repeated.iter().try_fold(memory.clone(), first)?;
        if self.axes.is_empty() {
            return array_over(py, &part, false);
        }
        let steps = self.axes.iter().zip(part.layout().shape()).enumerate();
        let steps = steps.map(|(axis, (of, &length))| match of {
            Some(_) => Step::Slice { axis, start: 0, step: 1, length },
            None => Step::At { axis, at: 0 },
        });
        let part = part.select(&steps.collect::<SmallVec<[Step; 6]>>())?;
        let own: SmallVec<[usize; 4]> = self.axes.iter().copied().flatten().collect();
        let count = own.iter().max().map_or(0, |last| last.saturating_add(1));
        let back = (0..count).map(|axis| own.iter().position(|one| *one == axis));
        array_over(py, &part.align(&back.collect::<Axes>())?, false)
    }

    /// Copies the first points to all others.
    pub(super) fn repeat(&self, output: &Output<'_>) -> PyResult<()> {
        let Some((_, memory)) = output.storage() else { return Ok(()) };
        // SAFETY: the user excludes other accesses to an output, as in NumPy.
        Ok(unsafe { repeat(memory, &self.repeated) }?)
    }
}

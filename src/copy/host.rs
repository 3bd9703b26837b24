//! Doing a copy between two fields in host memory.

use super::plan::{Loop, plan};
use crate::error::Result;
use crate::managed::Managed;

/// Copies every element of `source` to the same index of `target`.
///
/// # Errors
/// [`crate::error::Error::Argument`] where shapes differ.
///
/// # Safety
/// Both are host memory, of one type, and share no byte. Nobody else reads or writes the elements of
/// `target`, or writes those of `source`, meanwhile.
pub(super) unsafe fn copy(source: &Managed, target: &Managed) -> Result<()> {
    let plan = plan(source.layout(), target.layout())?;
    if source.layout().size() > 0 {
        let at = Cursor { source: source.data(), target: target.data(), run: plan.run };
        // SAFETY: plan steps over exactly the elements of both layouts, which lie in memory that
        // Managed vouches for; the caller excludes other accesses.
        unsafe { at.copy_loops(&plan.loops) };
    }
    Ok(())
}

/// Where a copy stands, and how many bytes go at once.
#[derive(Clone, Copy)]
struct Cursor {
    source: *const u8,
    target: *mut u8,
    run: usize,
}

impl Cursor {
    fn step(self, by: Loop) -> Self {
        let source = self.source.wrapping_byte_offset(by.source);
        Self { source, target: self.target.wrapping_byte_offset(by.target), run: self.run }
    }

    /// # Safety
    /// Every position that `loops` reach from here has `run` bytes to read and to write, and no
    /// byte that is read is written.
    unsafe fn copy_loops(self, loops: &[Loop]) {
        let Some((outer, inner)) = loops.split_first() else {
            // SAFETY: the caller's promise for this position.
            unsafe { self.source.copy_to_nonoverlapping(self.target, self.run) };
            return;
        };
        let mut at = self;
        for _ in 0..outer.count {
            if inner.is_empty() && self.run == 8 {
                // SAFETY: the caller's promise for this position; bytes need no alignment. A move
                // of a known size is an instruction where one of unknown size is a call.
                unsafe { at.source.copy_to_nonoverlapping(at.target, 8) };
            } else {
                // SAFETY: a position that `loops` reach.
                unsafe { at.copy_loops(inner) };
            }
            at = at.step(*outer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::copy;
    use super::*;
    use crate::alloc::{Fill, allocate, plan as plan_allocation};
    use crate::dtype::DType;

    fn field(shape: &[i64], ranks: &[i64], alignment: usize) -> Managed {
        let plan = plan_allocation(shape, DType::Int32, ranks, alignment, &[0, 0, 0]).unwrap();
        allocate(&plan, Fill::Zeros).unwrap()
    }

    /// Address of an element, counted independently of the code under test.
    fn at(field: &Managed, index: [i64; 3]) -> *mut i32 {
        let steps: i64 =
            field.layout().strides().iter().zip(index).map(|(stride, i)| stride * i).sum();
        let first: *mut std::ffi::c_void = field.data().cast();
        first.cast::<i32>().wrapping_offset(isize::try_from(steps).unwrap())
    }

    fn indices() -> impl Iterator<Item = [i64; 3]> {
        (0..60).map(|n| [n / 20, n / 5 % 4, n % 5])
    }

    #[test]
    fn every_element_arrives_at_its_index_in_every_order() {
        for (ranks, alignment) in [([0, 1, 2], 1), ([2, 1, 0], 1), ([1, 2, 0], 64), ([2, 0, 1], 32)]
        {
            let (source, target) =
                (field(&[3, 4, 5], &[0, 1, 2], 1), field(&[3, 4, 5], &ranks, alignment));
            for (number, index) in (0..).zip(indices()) {
                // SAFETY: an element of the field this test owns.
                unsafe { at(&source, index).write(number) };
            }
            // SAFETY: both fields belong to this test.
            unsafe { copy(&source, &target) }.unwrap();
            for (number, index) in (0..).zip(indices()) {
                // SAFETY: as above.
                assert_eq!(unsafe { at(&target, index).read() }, number);
            }
        }
    }

    #[test]
    fn a_read_only_target_and_overlapping_fields_are_refused() {
        let one = field(&[3, 4, 5], &[0, 1, 2], 1);
        let other = field(&[3, 4, 5], &[0, 1, 2], 1).into_readonly();
        // SAFETY: refused before anything is touched.
        assert!(unsafe { copy(&one, &other) }.is_err());
        // SAFETY: as above.
        assert!(unsafe { copy(&one, &one) }.is_err());
    }
}

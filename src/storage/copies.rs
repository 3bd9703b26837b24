//! Copies of a storage, for those who have no lock of Python's around them.

use super::{Residence, Spec, Storage};
use crate::borrow::Borrow;
use crate::error::Result;
use crate::field::Field;

impl Storage {
    /// The same values, names, halo, order and alignment in memory of its own, which may be written. A pair stays a
    /// pair.
    ///
    /// # Errors
    /// [`Error::Buffer`](crate::Error::Buffer) while somebody writes the values, and what allocating may answer.
    pub fn copy(&self) -> Result<Self> {
        let field = Field::clone(self.field());
        self.copied(&Spec {
            unknown_halo: field.halo.is_none(),
            near: self.residence(),
            field,
            ..Spec::default()
        })
    }

    /// The same values, names and halo in memory of the host, in the same order, but without gaps: what was a part, a
    /// step or padded becomes dense.
    ///
    /// # Errors
    /// As [`Storage::copy`].
    pub fn copy_without_padding(&self) -> Result<Self> {
        let Field { dims, halo, origin, order, .. } = self.field().clone();
        let unknown_halo = halo.is_none();
        let field = Field { dims, halo, origin, order, ..Field::default() };
        self.copied(&Spec { field, unknown_halo, near: Residence::Host, ..Spec::default() })
    }

    fn copied(&self, spec: &Spec) -> Result<Self> {
        if let Residence::Device(_) = self.residence() {
            // SAFETY: memory of a device alone, which no view in Rust reaches; work on it is in its timeline.
            return unsafe { Self::copy_of(&self.on_device()?, spec) };
        }
        let source = self.on_host()?;
        let _nobody_writes = Borrow::shared(&source)?;
        // SAFETY: nobody in Rust writes it (Borrow); for others whoever gave them the memory answers.
        unsafe { Self::copy_of(&source, spec) }
    }
}

#[cfg(test)]
mod tests {
    use crate::storage::Storage;

    #[test]
    fn a_copy_has_all_that_is_known_and_memory_of_its_own() {
        let wishes = Storage::builder([6, 5]).dims(["I", "J"]).halo([(1, 1), (0, 2)]);
        let field = wishes.layout([1, 0]).alignment(64).full(2.5_f64).unwrap();
        for copy in [field.copy().unwrap(), field.copy_without_padding().unwrap()] {
            assert_ne!(copy.managed().address(), field.managed().address());
            assert_eq!(
                (copy.dims(), copy.halo(), copy.ranks()),
                (field.dims(), field.halo(), field.ranks())
            );
        }
        assert_eq!(field.copy().unwrap().managed().layout().strides(), [1, 8]);
        assert_eq!(field.copy_without_padding().unwrap().managed().layout().strides(), [1, 6]);
    }

    #[test]
    fn what_is_like_a_field_has_its_shape_names_halo_and_order() {
        let field =
            Storage::builder([6, 5]).dims(["I", "J"]).layout([1, 0]).zeros::<f64>().unwrap();
        let like = field.with_halo(None).unwrap().like().zeros::<f32>().unwrap();
        assert_eq!((like.shape(), like.dims(), like.halo()), (&[6, 5][..], field.dims(), None));
        assert_eq!(like.ranks(), field.ranks());
        assert_eq!(
            field.like().halo([(1, 1), (0, 0)]).zeros::<f32>().unwrap().halo().unwrap()[0],
            (1, 1)
        );
    }
}

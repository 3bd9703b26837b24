//! Copies of a storage, and its values for reading once.

use super::buffers::Residence;
use super::data::Storage;
use super::spec::{Order, Spec};
use crate::borrow::Borrow;
use crate::error::Result;
use crate::field::Field;
use crate::managed::Managed;
use crate::sync::Mirrored;

impl Storage {
    /// The same values, names, halo, order and alignment in memory of its own, which may be
    /// written. A pair stays a pair.
    ///
    /// # Errors
    /// [`Error::Buffer`](crate::Error::Buffer) while a typed view writes the values, and the errors
    /// of allocating.
    pub fn copy(&self) -> Result<Self> {
        self.copied(&Spec::like(Field::clone(&self.field()), self.residence()))
    }

    /// The same values, names and halo in memory of the host, in the same order, but without gaps:
    /// a part, a view with steps or a padded storage becomes dense.
    ///
    /// # Errors
    /// As [`Storage::copy`].
    pub fn copy_without_padding(&self) -> Result<Self> {
        let Field { dims, halo, origin, order, .. } = Field::clone(&self.field());
        let field = Field { dims, halo, origin, order, ..Field::default() };
        self.copied(&Spec::like(field, Residence::Host))
    }

    fn copied(&self, spec: &Spec) -> Result<Self> {
        let source = self.newest()?;
        let _writers_excluded = self.read(source)?;
        // SAFETY: typed views that write are excluded (Borrow); the user who shared the memory
        // excludes other writers, as in NumPy.
        unsafe { Self::copy_of(source, spec) }
    }

    /// As [`Storage::borrowed`], and lets an update of the pair wait meanwhile.
    fn read(&self, memory: &Managed) -> Result<impl Sized + use<'_>> {
        let pair = self.buffers.pair().filter(|_| memory.device().is_host());
        let update_waits = pair.map(Mirrored::hold).transpose()?;
        Ok((Self::borrowed(memory)?, update_waits)) // dropped in this order
    }

    /// Excludes typed views that write, which reach memory of the host only.
    pub(super) fn borrowed(memory: &Managed) -> Result<Option<Borrow>> {
        memory.device().is_host().then(|| Borrow::shared(memory)).transpose()
    }

    /// The values on the host, for reading once: the buffer there, up to date, or a copy.
    ///
    /// # Errors
    /// The errors of allocating and of CUDA.
    pub fn values_on_host(&self) -> Result<Managed> {
        match self.host_as_is() {
            Some(_) => self.host().cloned(),
            None => Ok(self.copy_without_padding()?.managed().clone()),
        }
    }

    /// The values on the host in the order of memory, without gaps: shared if they lie so.
    ///
    /// # Errors
    /// As [`Storage::copy`].
    pub fn packed(&self) -> Result<Managed> {
        let ranks = self.ranks();
        let mut axes: Vec<usize> = (0..ranks.len()).collect();
        axes.sort_by_key(|&axis| ranks.get(axis).copied());
        let ordered = self.values_on_host()?.permute(&axes)?;
        if ordered.layout().is_c_contiguous() {
            return Ok(ordered);
        }
        let _writers_excluded = self.read(&ordered)?;
        let c_order = Order::Ranks((0_i64..).take(axes.len()).collect());
        // SAFETY: as in `copied`: typed views are excluded here, other writers by the user.
        let dense =
            unsafe { Self::copy_of(&ordered, &Spec { layout: c_order, ..Spec::default() }) };
        Ok(dense?.managed().clone())
    }
}

#[cfg(test)]
mod tests {
    use crate::storage::Storage;

    #[test]
    fn a_copy_keeps_all_labels_and_has_memory_of_its_own() {
        let builder = Storage::builder([6, 5]).dims(["I", "J"]).halo([(1, 1), (0, 2)]);
        let field = builder.layout([1, 0]).alignment(64).full(2.5_f64).unwrap();
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
    fn a_storage_like_another_has_its_shape_names_halo_and_order() {
        let field =
            Storage::builder([6, 5]).dims(["I", "J"]).layout([1, 0]).zeros::<f64>().unwrap();
        let like = field.with_halo(None).unwrap().like().zeros::<f32>().unwrap();
        assert_eq!((like.shape(), like.dims(), like.halo()), (&[6, 5][..], field.dims(), None));
        assert_eq!(like.ranks(), field.ranks());
        let halo = field.like().halo([(1, 1), (0, 0)]).zeros::<f32>().unwrap().halo();
        assert_eq!(halo.unwrap()[0], (1, 1));
    }

    #[test]
    fn packed_values_lie_in_the_order_of_memory_and_are_shared_if_dense() {
        let field = Storage::builder([2, 3]).layout([1, 0]).zeros::<f64>().unwrap();
        let packed = field.packed().unwrap();
        assert_eq!(packed.layout().shape(), [3, 2]);
        assert_eq!(packed.address(), field.managed().address());
        let padded = Storage::builder([2, 3]).alignment(64).zeros::<f64>().unwrap();
        assert!(padded.packed().unwrap().layout().is_c_contiguous());
    }
}

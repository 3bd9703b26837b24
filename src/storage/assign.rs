//! Writing a storage from other values: aligning them by name, choosing the side to write, and
//! marking it as newer.

use super::buffers::{Buffers, Residence};
use super::data::Storage;
use super::spec::Spec;
use crate::borrow::Borrow;
use crate::copy::copy;
use crate::device::Device;
use crate::error::Result;
use crate::field::{Dims, assigned};
use crate::managed::Managed;
use crate::sync::Dirty;

impl Storage {
    /// Copies the values of another storage of the same type into this one. Dimensions go by name
    /// if both have names, and every name of the value has to be one of this storage's; else by
    /// position. A missing or shorter dimension is broadcast, as in NumPy.
    /// Values that share memory with the target are copied first.
    ///
    /// A pair is written on the device if the newest values are there, else on the host, and that
    /// side becomes newer. Memory managed by CUDA is written on the device if the value has a buffer
    /// there. Write a part with [`Storage::select`].
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) for another type, names that do not belong
    /// together, and a shape that cannot be broadcast; [`Error::Buffer`](crate::Error::Buffer) for
    /// a read-only target, and while a typed view reads or writes one of the elements;
    /// [`Error::Device`](crate::Error::Device) if CUDA fails. Nothing is written then.
    ///
    /// # Example
    ///
    /// ```
    /// use dlfield::{Item, Storage};
    ///
    /// let field = Storage::builder([4, 3, 2]).dims(["I", "J", "K"]).zeros::<f64>()?;
    /// let profile = Storage::builder([2]).dims(["K"]).full(1.5_f64)?;
    /// field.select(&[Item::At(0)])?.assign(&profile)?; // by name, along J too
    /// assert_eq!(field.view::<f64, ndarray::Ix3>()?.iter().sum::<f64>(), 9.0);
    /// # Ok::<(), dlfield::Error>(())
    /// ```
    pub fn assign(&self, value: &Self) -> Result<()> {
        self.check_writable()?;
        let source = match value.device_as_is() {
            Some(_) if self.is_unified() => value.device()?,
            _ => value.newest()?,
        };
        let aligned = self.aligned(source, value.dims().as_ref())?;
        let mut writers_excluded = Self::borrowed(source)?;
        let (target, dirty) = self.assigned_side(source.device())?;
        let values = if source.may_overlap(target) {
            // SAFETY: typed views that write the source are excluded (Borrow); the user who shared
            // the memory excludes other code.
            let own = unsafe { own_copy(&aligned) }?;
            writers_excluded = None; // it would exclude the target's
            own.managed().clone()
        } else {
            aligned
        };
        let on_host = target.device().is_host();
        let _others_excluded = on_host.then(|| Borrow::overwriting(target)).transpose()?;
        // SAFETY: typed views of both are excluded (Borrow), or nobody else has the values; the
        // user who shared the memory excludes other code.
        let outcome = unsafe { self.put(&values, target, dirty) };
        drop(writers_excluded);
        outcome
    }

    /// Copies and broadcasts values of the storage's own type, which come from a device. Values
    /// that share memory with the target are copied first.
    ///
    /// # Errors
    /// As [`Storage::assign`].
    ///
    /// # Safety
    /// No other code writes the elements of `value`, or reads or writes those of the storage,
    /// meanwhile, except work in their timelines.
    pub(crate) unsafe fn write(&self, value: &Managed, from: Device) -> Result<()> {
        let (target, dirty) = self.assigned_side(from)?;
        let own;
        let values = if value.may_overlap(target) {
            // SAFETY: the caller excludes writers of the value.
            own = unsafe { own_copy(value) }?;
            own.managed()
        } else {
            value
        };
        // SAFETY: the caller excludes other accesses to both; they share no byte.
        unsafe { self.put(values, target, dirty) }
    }

    /// Copies and broadcasts values into a buffer of the storage, which becomes the newer one.
    ///
    /// # Safety
    /// As [`copy`].
    unsafe fn put(&self, values: &Managed, target: &Managed, dirty: Dirty) -> Result<()> {
        let values = values.broadcast_to(self.shape())?;
        // SAFETY: the caller's promise.
        let outcome = unsafe { copy(&values, target) };
        self.set_dirty(dirty); // perhaps half written, if the copy has failed
        outcome
    }

    /// Checks that Python may write the elements now.
    ///
    /// # Errors
    /// [`Error::Buffer`](crate::Error::Buffer) for a read-only storage, and while a typed view uses
    /// one of the elements of a storage that is on the host alone. The buffers of a pair are
    /// borrowed when they are brought up to date, by other threads too.
    pub(crate) fn check_assignable(&self) -> Result<()> {
        self.check_writable()?;
        self.plain_host().map_or(Ok(()), Borrow::check_unused)
    }

    /// Orders the axes of a value as [`assigned`] says; [`Managed::broadcast_to`] adds those in front.
    ///
    /// # Errors
    /// As [`assigned`].
    pub(crate) fn aligned(&self, value: &Managed, dims: Option<&Dims>) -> Result<Managed> {
        let (field, own) = (self.field(), (value.layout().shape(), dims));
        let axes = assigned(own, (self.shape(), field.dims.as_ref()))?;
        let added = axes.iter().take_while(|axis| axis.is_none()).count();
        value.align(axes.get(added..).unwrap_or_default())
    }

    /// The buffer to write with values on a device or on the host (GDP-3, "Choosing the Device"),
    /// up to date, and the side that becomes newer.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if CUDA fails.
    pub(crate) fn assigned_side(&self, values: Device) -> Result<(&Managed, Dirty)> {
        let on_gpu = match &self.buffers {
            Buffers::Host(_) | Buffers::HostOf(_) => false,
            Buffers::Device(_) | Buffers::DeviceOf(_) => true,
            _ => Residence::for_memory_on(values) != Residence::Host,
        };
        Ok(if on_gpu { (self.device()?, Dirty::Device) } else { (self.host()?, Dirty::Host) })
    }
}

/// A copy of values where they are.
///
/// # Safety
/// No other code writes the values meanwhile, except work in their timeline.
unsafe fn own_copy(value: &Managed) -> Result<Storage> {
    let ordinal = Residence::for_memory_on(value.device()).ordinal();
    let default_residence = ordinal.map_or(Residence::Host, Residence::Device);
    let spec = Spec { default_residence, ..Spec::default() };
    // SAFETY: the caller excludes writers of the value.
    unsafe { Storage::copy_of(value, &spec) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Item;

    fn numbers(storage: &Storage) -> Vec<f64> {
        let memory = storage.packed().unwrap();
        let bytes = memory.layout().nbytes();
        // SAFETY: packed memory has its elements without gaps, and nothing writes it meanwhile.
        let bytes = unsafe { std::slice::from_raw_parts(memory.start(), bytes) };
        bytes.chunks_exact(8).map(|item| f64::from_ne_bytes(item.try_into().unwrap())).collect()
    }

    #[test]
    fn values_go_where_their_names_belong() {
        let target = Storage::builder([2, 3]).dims(["I", "K"]).zeros::<f64>().unwrap();
        let value = Storage::builder([3]).dims(["K"]).zeros::<f64>().unwrap();
        let last = value.select(&[Item::Slice { start: Some(2), stop: None, step: None }]).unwrap();
        last.assign(&Storage::builder([1]).full(5.0_f64).unwrap()).unwrap();
        target.assign(&value).unwrap();
        assert_eq!(numbers(&target), [0.0, 0.0, 5.0, 0.0, 0.0, 5.0]);
    }

    #[test]
    fn values_that_share_memory_with_the_target_are_copied_first() {
        let field = Storage::builder([3]).zeros::<f64>().unwrap();
        for (at, number) in [(0, 1.0), (1, 2.0), (2, 3.0)] {
            let one = field.select(&[Item::At(at)]).unwrap();
            one.assign(&Storage::builder([0_i64; 0]).full::<f64>(number).unwrap()).unwrap();
        }
        let backwards = Item::Slice { start: None, stop: None, step: Some(-1) };
        field.assign(&field.select(&[backwards]).unwrap()).unwrap();
        assert_eq!(numbers(&field), [3.0, 2.0, 1.0]);
    }

    #[cfg(feature = "ndarray")]
    #[test]
    fn an_overlapping_part_is_not_written_while_a_view_reads_it() {
        let field = Storage::builder([3]).full(1.0_f64).unwrap();
        let part = |at| field.select(&[at]).unwrap();
        let backwards = part(Item::Slice { start: None, stop: None, step: Some(-1) });
        let view = field.view::<f64, ndarray::Ix1>().unwrap();
        assert!(field.assign(&backwards).unwrap_err().to_string().contains("read"));
        drop(view);
        let target = part(Item::Slice { start: Some(1), stop: None, step: None });
        let source = part(Item::Slice { start: None, stop: Some(2), step: None });
        let last = part(Item::Slice { start: Some(2), stop: None, step: None });
        let writer = last.view_mut::<f64, ndarray::Ix1>().unwrap();
        assert!(target.assign(&source).is_err());
        drop(writer);
        assert!(target.assign(&source).is_ok());
    }

    #[test]
    fn other_types_shapes_and_names_are_refused() {
        let field = Storage::builder([2, 3]).dims(["I", "J"]).zeros::<f64>().unwrap();
        let refused = |value: Storage| field.assign(&value).unwrap_err().to_string();
        assert!(refused(Storage::builder([2, 3]).zeros::<f32>().unwrap()).contains("float64"));
        assert!(refused(Storage::builder([4]).zeros::<f64>().unwrap()).contains('4'));
        let named = Storage::builder([2]).dims(["I"]).zeros::<f64>().unwrap();
        let odd = Storage::builder([2, 2]).dims(["I", "K"]).zeros::<f64>().unwrap();
        assert!(field.assign(&named).is_ok());
        assert!(refused(odd).contains("('I', 'J')"));
    }
}

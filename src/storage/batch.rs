//! Many copies between storages at once, planned once.

use std::fmt;
use std::sync::Arc;

use super::data::Storage;
use crate::borrow::{Borrow, BorrowRequest};
use crate::copy::{HostBatch, copy, first_overlap};
use crate::error::{Error, Result};
use crate::field::align_by_name;
use crate::managed::Managed;
use crate::sync::Dirty;

/// Many copies between storages, planned once and run any number of times, such as those that pack
/// all faces of all fields before a halo exchange.
///
/// Each source is copied to the target with the same number. A batch costs less than assignments
/// one by one: strides are analysed when it is made, and one run borrows all elements at once.
/// It keeps the memory alive.
///
/// # Example
///
/// ```
/// use dlfield::{CopyBatch, Item, Storage};
///
/// let field = Storage::builder([6, 5, 4]).full(1.5_f64)?;
/// let part = |from, to| Item::Slice { start: Some(from), stop: Some(to), step: None };
/// let faces = [field.select(&[part(1, 2)])?, field.select(&[part(4, 5)])?];
/// let buffers = [(); 2].map(|()| Storage::builder([1, 5, 4]).zeros::<f64>());
/// let buffers = buffers.into_iter().collect::<dlfield::Result<Vec<_>>>()?;
///
/// let pack = CopyBatch::new(&faces, &buffers)?;
/// pack.run()?; // in each step
/// assert_eq!(buffers[1].view::<f64, ndarray::Ix3>()?.iter().sum::<f64>(), 30.0);
/// # Ok::<(), dlfield::Error>(())
/// ```
pub struct CopyBatch {
    copies: Vec<(Storage, Storage)>,
    /// `None` if a storage has no buffer on the host.
    host: Option<OnHost>,
    /// True if all storages have a buffer on a device.
    can_run_on_device: bool,
}

/// The copies on the host, and the elements that they read and write.
struct OnHost {
    batch: HostBatch,
    requests: Vec<BorrowRequest>,
}

impl CopyBatch {
    /// Plans the copies. Source and target have one type and one shape. Dimensions go by name if
    /// both have names, as in [`Storage::assign`], else by position.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number of targets, another type or shape, and names that do
    /// not belong together; [`Error::Buffer`] for a read-only target, and for one that shares
    /// elements with a source or another target; [`Error::NoBuffer`] unless all storages have a
    /// buffer on the host, or all have one on a device.
    pub fn new<'a>(
        sources: impl IntoIterator<Item = &'a Storage>,
        targets: impl IntoIterator<Item = &'a Storage>,
    ) -> Result<Self> {
        let [sources, targets] = [Vec::from_iter(sources), Vec::from_iter(targets)];
        if sources.len() != targets.len() {
            return Err(Error::Argument(format!(
                "CopyBatch: expected one target for each source, got {} sources and {} targets",
                sources.len(),
                targets.len()
            )));
        }
        let pairs = sources.into_iter().zip(targets).enumerate();
        let copies: Vec<_> =
            pairs.map(|(number, (from, to))| checked(number, from, to)).collect::<Result<_>>()?;
        let host = on_side(&copies, Storage::host_as_is)?.map(|pairs| OnHost::new(&pairs));
        let can_run_on_device = on_side(&copies, Storage::device_as_is)?.is_some();
        let batch = Self { host: host.transpose()?, can_run_on_device, copies };
        if batch.host.is_none() && !can_run_on_device { Err(batch.no_side()) } else { Ok(batch) }
    }

    /// Makes the copies. They are made on a device if all storages have a buffer there and the
    /// newest values of a source are there, or if there is no other way; else on the host. That
    /// side of each pair is brought up to date before, and the side of the targets becomes newer.
    ///
    /// # Errors
    /// [`Error::Buffer`] while a typed view, or a run in another thread, uses an element of a
    /// target, or writes one of a source, on the host; [`Error::Device`] if CUDA fails.
    pub fn run(&self) -> Result<()> {
        let is_newest_on_device = || self.copies.iter().any(|(from, _)| from.is_device_newest());
        match &self.host {
            Some(host) if !self.can_run_on_device || !is_newest_on_device() => {
                self.run_on_host(host)
            }
            _ => self.run_on_device(),
        }
    }

    fn run_on_host(&self, host: &OnHost) -> Result<()> {
        for (number, (source, target)) in self.copies.iter().enumerate() {
            source.host().map_err(|error| about(2 * number, error))?;
            target.host().map_err(|error| about(2 * number + 1, error))?;
        }
        let _others_excluded =
            Borrow::all(&host.requests).map_err(|(number, error)| about(number, error))?;
        // SAFETY: `new` has checked the pairs, and that targets are apart from all others. `self`
        // keeps the buffers, nothing is in flight on them (host), and typed views are excluded
        // (Borrow); the user who shared the memory excludes other code.
        unsafe { host.batch.run() };
        self.copies.iter().for_each(|(_, target)| target.set_dirty(Dirty::Host));
        Ok(())
    }

    fn run_on_device(&self) -> Result<()> {
        let sides = self.copies.iter().map(|(source, target)| Ok((source.device()?, target)));
        let sides: Vec<_> = sides.collect::<Result<_>>()?; // before any side becomes newer
        for (source, target) in sides {
            let on_device = target.device()?;
            // SAFETY: `new` has checked the pair, and that targets are apart from all others. Work
            // on a device is in the timelines of both; the user excludes other code.
            let outcome = unsafe { copy(source, on_device) };
            target.set_dirty(Dirty::Device); // perhaps half written, if the copy has failed
            outcome?;
        }
        Ok(())
    }

    /// The error for storages without a common side.
    fn no_side(&self) -> Error {
        let without = |side: fn(&Storage) -> Option<&Managed>| {
            let all = self.copies.iter().enumerate();
            let mut named =
                all.flat_map(|(n, (from, to))| [("source", n, from), ("target", n, to)]);
            named.find(|(.., one)| side(one).is_none()).map(|(kind, n, _)| format!("{kind} {n}"))
        };
        Error::NoBuffer(format!(
            "CopyBatch: expected storages that all have a buffer on the host, or all have one on a \
             GPU, got {} on the host alone and {} on a GPU alone; assign those one by one, or have \
             dlfield or CUDA keep both sides in step",
            without(Storage::device_as_is).unwrap_or_default(),
            without(Storage::host_as_is).unwrap_or_default()
        ))
    }
}

impl fmt::Debug for CopyBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyBatch").field("copies", &self.copies.len()).finish_non_exhaustive()
    }
}

/// Finds two storages that share a byte on the host, or on a device: their numbers.
pub(crate) fn first_sharing(storages: &[Storage]) -> Option<(usize, usize)> {
    [Storage::host_as_is, Storage::device_as_is].into_iter().find_map(|side| {
        let numbered = storages.iter().enumerate();
        let placed: Vec<_> = numbered.filter_map(|(at, one)| Some((at, side(one)?))).collect();
        let fields: Vec<_> = placed.iter().map(|&(_, memory)| (memory, true)).collect();
        let (one, other) = first_overlap(&fields)?;
        Some((placed.get(one)?.0, placed.get(other)?.0))
    })
}

/// Checks that a source can be copied to its target, and orders its axes by name.
fn checked(number: usize, source: &Storage, target: &Storage) -> Result<(Storage, Storage)> {
    let about_source = |error: Error| about(2 * number, error);
    target.check_writable().map_err(|error| about(2 * number + 1, error))?;
    if source.dtype() != target.dtype() {
        return Err(about_source(Error::Argument(format!(
            "expected {}, the type of its target, got {}; convert it first",
            target.dtype(),
            source.dtype()
        ))));
    }
    let axes = match (source.dims(), target.dims()) {
        (Some(own), Some(wanted)) => align_by_name(&own, &wanted).map_err(about_source)?,
        _ => None,
    };
    let ordered = match axes {
        Some(axes) => {
            Storage::new(source.buffers.map(|one| one.align(&axes))?, Arc::default()) // no labels
        }
        None => source.clone(),
    };
    if ordered.shape() != target.shape() {
        return Err(about_source(Error::Argument(format!(
            "expected the shape {:?} of its target, got {:?}{}; select parts of one shape, or \
             broadcast it first",
            target.shape(),
            ordered.shape(),
            if source.dims().is_some() { " in the order of the target's dims" } else { "" }
        ))));
    }
    Ok((ordered, target.clone()))
}

/// Source and target of each copy.
type Pairs<'a> = Vec<(&'a Managed, &'a Managed)>;

/// The buffers on one side; `None` if a storage has none there.
///
/// # Errors
/// [`Error::Buffer`] if a target shares elements with others.
fn on_side(
    copies: &[(Storage, Storage)],
    side: fn(&Storage) -> Option<&Managed>,
) -> Result<Option<Pairs<'_>>> {
    let pairs = copies.iter().map(|(source, target)| Some((side(source)?, side(target)?)));
    let pairs: Option<Pairs<'_>> = pairs.collect();
    pairs.iter().try_for_each(|pairs| check_apart(pairs))?;
    Ok(pairs)
}

fn check_apart(pairs: &[(&Managed, &Managed)]) -> Result<()> {
    let fields: Vec<_> = pairs.iter().flat_map(|&(from, to)| [(from, false), (to, true)]).collect();
    let Some((one, other)) = first_overlap(&fields) else { return Ok(()) };
    Err(Error::Buffer(format!(
        "CopyBatch: expected targets that share no element with a source or another target, got {} \
         and {} that overlap; put them into batches that run one after the other, or copy the \
         source first",
        field_name(one),
        field_name(other)
    )))
}

impl OnHost {
    fn new(pairs: &[(&Managed, &Managed)]) -> Result<Self> {
        let requests = pairs.iter().flat_map(|&(source, target)| {
            [BorrowRequest::new(source, false), BorrowRequest::new(target, true)]
        });
        let requests = requests.collect();
        Ok(Self { batch: HostBatch::new(pairs.iter().copied())?, requests })
    }
}

/// Names the field that an error is about.
fn about(number: usize, error: Error) -> Error {
    error.about(&format!("CopyBatch: {}", field_name(number)))
}

/// The name of a field in a list of sources, each followed by its target.
fn field_name(number: usize) -> String {
    format!("{} {}", if number.is_multiple_of(2) { "source" } else { "target" }, number / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Item;

    #[cfg(feature = "ndarray")]
    #[test]
    fn a_run_is_refused_while_a_view_writes_a_source_or_uses_a_target() {
        use ndarray::Ix1;
        let part = |field: &Storage, from, to| {
            field.select(&[Item::Slice { start: Some(from), stop: Some(to), step: None }]).unwrap()
        };
        let [source, target] = [1.0_f64, 0.0].map(|x| Storage::builder([6]).full(x).unwrap());
        let [sources, targets] = [&source, &target].map(|one| [part(one, 0, 3), part(one, 3, 6)]);
        let batch = CopyBatch::new(&sources, &targets).unwrap();
        let refused = |name: &str| {
            let text = batch.run().unwrap_err().to_string();
            assert!(text.starts_with(&format!("CopyBatch: {name} 1: field:")), "{text}");
        };
        let last = [&source, &target].map(|one| part(one, 5, 6));
        let writer = last[0].view_mut::<f64, Ix1>().unwrap();
        refused("source");
        drop(writer);
        let reader = last[1].view::<f64, Ix1>().unwrap();
        refused("target");
        drop(reader);
        assert_eq!(target.view::<f64, Ix1>().unwrap().sum(), 0.0, "nothing is copied then");
        let other_reader = last[0].view::<f64, Ix1>().unwrap();
        batch.run().unwrap();
        drop(other_reader);
        assert_eq!(target.view_mut::<f64, Ix1>().unwrap().sum(), 6.0, "nothing stays borrowed");
    }
}

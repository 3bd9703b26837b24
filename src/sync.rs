//! Memory: two buffers of the same values, one on the host and one on a device, and which of them was
//! written last (GDP-3, "Sync State").
//!
//! All views of a pair share one [`SyncState`]. What is copied is always the whole pair, whichever view
//! asks for it: the state speaks of all of it.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::borrow::Borrow;
use crate::copy::copy;
use crate::error::{Error, Result};
use crate::managed::Managed;

/// Which buffer of a pair was written last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Newer {
    /// Neither: both hold the same values (`SYNC_CLEAN`).
    #[default]
    Neither,
    /// That of the host (`SYNC_HOST_DIRTY`).
    Host,
    /// That of the device (`SYNC_DEVICE_DIRTY`).
    Device,
}

/// The state of a pair of buffers, shared by all storages over it.
#[derive(Debug, Default)]
pub struct SyncState {
    /// Read without a lock: who holds the lock may be waiting for whoever asks.
    newer: AtomicU8,
    /// Held while a copy is made.
    whole: Mutex<Weak<Whole>>,
}

/// A pair as it was made, of which views see parts.
#[derive(Debug)]
struct Whole {
    host: Managed,
    device: Managed,
}

impl SyncState {
    /// Both buffers hold the same values, or `newer` was written last.
    #[must_use]
    pub fn new(newer: Newer) -> Self {
        let state = Self::default();
        state.put(newer);
        state
    }

    /// Which buffer was written last.
    #[must_use]
    pub fn newer(&self) -> Newer {
        match self.newer.load(Ordering::Acquire) {
            1 => Newer::Host,
            2 => Newer::Device,
            _ => Newer::Neither,
        }
    }

    /// Says which buffer was written last. Waits for a copy that is being made.
    pub fn set(&self, newer: Newer) {
        let _after_a_copy = self.lock();
        self.put(newer);
    }

    fn put(&self, newer: Newer) {
        let number = match newer {
            Newer::Neither => 0,
            Newer::Host => 1,
            Newer::Device => 2,
        };
        self.newer.store(number, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Weak<Whole>> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer on the host and its sibling on a device, or the same part of both.
#[derive(Debug, Clone)]
pub(crate) struct Mirrored(Arc<Sides>);

/// What a pair holds: behind one pointer, so that what may be a pair is as small as what is none.
#[derive(Debug)]
struct Sides {
    host: Managed,
    device: Managed,
    whole: Arc<Whole>,
    state: Arc<SyncState>,
}

impl Mirrored {
    /// Two buffers of one shape and type. A state that belongs to a pair already goes on speaking of
    /// all of that pair.
    ///
    /// # Errors
    /// [`Error::Argument`] where shapes or types differ, or the state is that of other buffers.
    pub(crate) fn new(host: Managed, device: Managed, state: Arc<SyncState>) -> Result<Self> {
        check_alike(&host, &device)?;
        let mut known = state.lock();
        let whole = match known.upgrade() {
            Some(whole) if whole.holds(&host, &device) => whole,
            Some(_) => return Err(of_others()),
            None => Arc::new(Whole { host: host.clone(), device: device.clone() }),
        };
        *known = Arc::downgrade(&whole);
        drop(known);
        // What must not be written on one side must not be on the other, which is copied there.
        let readonly = host.readonly() || device.readonly();
        let shown = |one: Managed| if readonly { one.into_readonly() } else { one };
        Ok(Self(Arc::new(Sides { host: shown(host), device: shown(device), whole, state })))
    }

    /// The buffer on the host as it is, perhaps older than that on the device.
    pub(crate) fn host(&self) -> &Managed {
        &self.0.host
    }

    /// The buffer on the device as it is, perhaps older than that on the host.
    pub(crate) fn device(&self) -> &Managed {
        &self.0.device
    }

    pub(crate) fn state(&self) -> &Arc<SyncState> {
        &self.0.state
    }

    /// The same part of both.
    ///
    /// # Errors
    /// What `part` answers.
    pub(crate) fn map(&self, part: impl Fn(&Managed) -> Result<Managed>) -> Result<Self> {
        let Sides { host, device, whole, state } = &*self.0;
        let (whole, state) = (Arc::clone(whole), Arc::clone(state));
        Ok(Self(Arc::new(Sides { host: part(host)?, device: part(device)?, whole, state })))
    }

    /// Copies the host's buffer to the device where it is newer, or in any case. Does not wait for it.
    ///
    /// # Errors
    /// What CUDA refuses.
    pub(crate) fn to_device(&self, force: bool) -> Result<()> {
        self.bring(Newer::Host, force)
    }

    /// Copies the device's buffer to the host where it is newer, or in any case. Does not wait for it.
    ///
    /// # Errors
    /// What CUDA refuses.
    pub(crate) fn to_host(&self, force: bool) -> Result<()> {
        self.bring(Newer::Device, force)
    }

    fn bring(&self, from: Newer, force: bool) -> Result<()> {
        // Held meanwhile: who comes second finds the copy made.
        let Sides { whole, state, .. } = &*self.0;
        let _whole = state.lock();
        if state.newer() != from && !force {
            return Ok(());
        }
        let Whole { host, device } = &**whole;
        let (source, target) = if from == Newer::Host { (host, device) } else { (device, host) };
        let _nobody_else = match from {
            Newer::Device => Borrow::overwriting(host)?, // typed views must not change meanwhile
            _ => Borrow::shared(host)?,
        };
        // SAFETY: Rust's own views of the host's values are not there meanwhile (Borrow); what others do is the user's
        // to guard. Work in flight is in the timelines of both.
        unsafe { copy(source, target) }?;
        state.put(Newer::Neither);
        Ok(())
    }
}

impl Whole {
    /// Where both buffers lie alike, parts of them begin as far from the start of each.
    fn are_the_same_part(&self, host: &Managed, device: &Managed) -> bool {
        let alike = self.host.layout().places_like(self.device.layout());
        let into = |part: &Managed, whole: &Managed| part.address().wrapping_sub(whole.address());
        let together = into(host, &self.host) == into(device, &self.device)
            && host.layout().places_like(device.layout());
        !alike || host.layout().size() == 0 || together
    }

    /// Whether both buffers are parts of these.
    fn holds(&self, host: &Managed, device: &Managed) -> bool {
        let inside = |part: &Managed, whole: &Managed| {
            let range = |one: &Managed| {
                let first = one.address().wrapping_add_signed(one.span().low);
                (first, first.wrapping_add(one.span().len()))
            };
            let ((from, to), (start, end)) = (range(part), range(whole));
            part.layout().size() == 0 || (start <= from && to <= end)
        };
        inside(host, &self.host)
            && inside(device, &self.device)
            && self.are_the_same_part(host, device)
    }
}

/// # Errors
/// [`Error::Argument`] where shapes or types differ.
pub(crate) fn check_alike(host: &Managed, device: &Managed) -> Result<()> {
    let word = |one: &Managed| format!("{} of shape {:?}", one.dtype(), one.layout().shape());
    if host.dtype() == device.dtype() && host.layout().shape() == device.layout().shape() {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "device_data: expected {}, as data has, got {}",
        word(host),
        word(device)
    )))
}

fn of_others() -> Error {
    Error::Argument(
        "sync_state: expected that of the storage which these buffers were taken from, or a new SyncState(), got that \
         of other buffers"
            .into(),
    )
}

//! Memory: a pair of buffers with the same values, one on the host and one on a device, and which
//! of them was written last (GDP-3, "Sync State").
//!
//! All views of a pair share one [`SyncState`]. Every copy is of the whole pair, even for a view of
//! a part, because the state describes all of it.

use std::any::Any;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use crate::borrow::Borrow;
use crate::copy::copy;
use crate::cuda::device_count;
use crate::error::{Error, Result};
use crate::managed::Managed;

/// The buffer of a pair that was written last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dirty {
    /// Neither: both hold the same values (`SYNC_CLEAN`).
    #[default]
    Neither = 0,
    /// The host's buffer (`SYNC_HOST_DIRTY`).
    Host = 1,
    /// The device's buffer (`SYNC_DEVICE_DIRTY`).
    Device = 2,
}

/// Anything that lives as long as a state.
pub(crate) type Companion = Arc<dyn Any + Send + Sync>;

/// The state of a pair of buffers, shared by all storages over it.
#[derive(Debug, Default)]
pub struct SyncState {
    /// Read without the lock: the thread that holds the lock may be waiting for the reader.
    dirty: AtomicU8,
    /// The pair that the state describes. Locked during a copy.
    whole: Mutex<Weak<Whole>>,
    /// An object of the layer above, such as a weak reference to its Python object.
    companion: Mutex<Option<Companion>>,
}

/// A pair as it was made. Views see parts of it.
#[derive(Debug)]
struct Whole {
    host: Managed,
    device: Managed,
}

impl SyncState {
    /// A state of new buffers, of which `dirty` was written last.
    #[must_use]
    pub fn new(dirty: Dirty) -> Self {
        Self { dirty: AtomicU8::new(dirty as u8), ..Self::default() }
    }

    /// The buffer that was written last.
    #[must_use]
    pub fn dirty(&self) -> Dirty {
        match self.dirty.load(Ordering::Acquire) {
            1 => Dirty::Host,
            2 => Dirty::Device,
            _ => Dirty::Neither,
        }
    }

    /// Records which buffer was written last. Waits for a copy in progress.
    pub fn set(&self, dirty: Dirty) {
        let _after_a_copy = self.lock(); // fails only in a forked child, where no copy is in progress
        self.put(dirty);
    }

    fn put(&self, dirty: Dirty) {
        self.dirty.store(dirty as u8, Ordering::Release);
    }

    /// The one state of buffers that are given together. A buffer taken from a storage brings the
    /// state of its pair.
    ///
    /// # Errors
    /// [`Error::Argument`] for two states: both would describe the same values.
    pub fn common<'a>(
        states: impl IntoIterator<Item = Option<&'a Arc<Self>>>,
    ) -> Result<Option<Arc<Self>>> {
        let mut states = states.into_iter().flatten();
        let Some(first) = states.next() else { return Ok(None) };
        if states.any(|state| !Arc::ptr_eq(first, state)) {
            return Err(foreign_state());
        }
        Ok(Some(Arc::clone(first)))
    }

    /// The state of the pair that two buffers belong to, if there is such a pair.
    pub(crate) fn of_pair(host: &Managed, device: &Managed) -> Option<Arc<Self>> {
        let known = STATES.lock().unwrap_or_else(PoisonError::into_inner);
        let states: Vec<Arc<Self>> = known.iter().filter_map(Weak::upgrade).collect();
        drop(known);
        let is_theirs = |state: &Arc<Self>| {
            let whole = state.lock().ok().and_then(|whole| whole.upgrade());
            host.layout().size() > 0 && whole.is_some_and(|whole| whole.holds(host, device))
        };
        states.into_iter().find(is_theirs)
    }

    /// Remembers the state of a new pair for [`SyncState::of_pair`].
    fn remember(self: &Arc<Self>) {
        let mut states = STATES.lock().unwrap_or_else(PoisonError::into_inner);
        if states.len() == states.capacity() {
            states.retain(|state| state.strong_count() > 0);
        }
        states.push(Arc::downgrade(self));
    }

    /// The companion of the state, locked until the guard is dropped.
    pub(crate) fn companion(&self) -> MutexGuard<'_, Option<Companion>> {
        self.companion.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a copy in progress.
    ///
    /// # Errors
    /// [`Error::Device`] if the copy was in progress when this process was forked: the thread that
    /// makes it is not here, and the memory of the pair is that of another process.
    fn lock(&self) -> Result<MutexGuard<'_, Weak<Whole>>> {
        match self.whole.try_lock() {
            Ok(whole) => return Ok(whole),
            Err(TryLockError::Poisoned(whole)) => return Ok(whole.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
        device_count()?; // refuses a forked child
        Ok(self.whole.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The states of all pairs, for buffers that come without theirs.
static STATES: Mutex<Vec<Weak<SyncState>>> = Mutex::new(Vec::new());

/// A buffer on the host and its sibling on a device, or the same part of both.
#[derive(Debug, Clone)]
pub(crate) struct Mirrored(Arc<Parts>);

/// The content of a `Mirrored`, behind one pointer so that a storage without a pair stays small.
#[derive(Debug)]
struct Parts {
    host: Managed,
    device: Managed,
    whole: Arc<Whole>,
    state: Arc<SyncState>,
}

impl Mirrored {
    /// Pairs two buffers of one shape and type. A state that belongs to a pair already still
    /// describes all of that pair.
    ///
    /// # Errors
    /// [`Error::Argument`] if shapes or types differ, or the state is that of other buffers.
    pub(crate) fn new(host: Managed, device: Managed, state: Arc<SyncState>) -> Result<Self> {
        check_alike(&host, &device)?;
        let earlier; // dropped after the lock: it may be the last that keeps foreign memory
        let mut known = state.lock()?;
        earlier = known.upgrade();
        let whole = match &earlier {
            Some(whole) if whole.holds(&host, &device) => Arc::clone(whole),
            Some(_) => return Err(foreign_state()),
            None => Arc::new(Whole { host: host.clone(), device: device.clone() }),
        };
        *known = Arc::downgrade(&whole);
        drop(known);
        if earlier.is_none() {
            state.remember();
        }
        // Copies write either side: if one is read-only, so is the pair.
        let readonly = host.readonly() || device.readonly();
        let shown = |one: Managed| if readonly { one.into_readonly() } else { one };
        Ok(Self(Arc::new(Parts { host: shown(host), device: shown(device), whole, state })))
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
    pub(crate) fn map(&self, part: impl Fn(&Managed) -> Result<Managed>) -> Result<Self> {
        let Parts { host, device, whole, state } = &*self.0;
        let (whole, state) = (Arc::clone(whole), Arc::clone(state));
        Ok(Self(Arc::new(Parts { host: part(host)?, device: part(device)?, whole, state })))
    }

    /// Copies the host's buffer to the device if it is newer, or always with `force`. Does not wait
    /// for the copy.
    pub(crate) fn to_device(&self, force: bool) -> Result<()> {
        self.bring(Dirty::Host, force)
    }

    /// Copies the device's buffer to the host if it is newer, or always with `force`. Does not wait
    /// for the copy.
    pub(crate) fn to_host(&self, force: bool) -> Result<()> {
        self.bring(Dirty::Device, force)
    }

    /// Makes copies between the buffers wait until the result is dropped. Waits for one in progress.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy was in progress when this process was forked.
    pub(crate) fn hold(&self) -> Result<impl Sized + use<'_>> {
        self.0.state.lock()
    }

    fn bring(&self, from: Dirty, force: bool) -> Result<()> {
        let Parts { whole, state, .. } = &*self.0;
        // Held during the copy, so that a second caller finds it done.
        let _whole = state.lock()?;
        if state.dirty() != from && !force {
            return Ok(());
        }
        let Whole { host, device } = &**whole;
        let (source, target) = if from == Dirty::Host { (host, device) } else { (device, host) };
        let _views_excluded = match from {
            Dirty::Device => Borrow::overwriting(host)?, // typed views must not change meanwhile
            _ => Borrow::shared(host)?,
        };
        // SAFETY: the borrow excludes typed views of the host's values that conflict; the user who
        // shared the memory excludes other code. Work in flight is in the timelines of both.
        unsafe { copy(source, target) }?;
        state.put(Dirty::Neither);
        Ok(())
    }
}

impl Whole {
    /// True if both buffers are parts of these, and the same part if the two have one layout.
    fn holds(&self, host: &Managed, device: &Managed) -> bool {
        if host.layout().size() == 0 {
            return true;
        }
        let range = |one: &Managed| {
            let first = one.position().wrapping_add_signed(one.layout().span().low);
            (first, first.wrapping_add(one.layout().span().len()))
        };
        let inside = |part: &Managed, whole: &Managed| {
            let ((from, to), (start, end)) = (range(part), range(whole));
            start <= from && to <= end
        };
        let into = |part: &Managed, whole: &Managed| part.position().wrapping_sub(whole.position());
        let same_part = into(host, &self.host) == into(device, &self.device)
            && host.layout().places_like(device.layout());
        let one_layout = self.host.layout().places_like(self.device.layout());
        inside(host, &self.host) && inside(device, &self.device) && (same_part || !one_layout)
    }
}

/// Checks that two buffers can be a pair.
///
/// # Errors
/// [`Error::Argument`] if shapes or types differ.
pub(crate) fn check_alike(host: &Managed, device: &Managed) -> Result<()> {
    let [expected, got] = [host, device].map(|one| (one.dtype(), one.layout().shape()));
    if expected == got {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "device_data: expected {} of shape {:?}, as data has, got {} of shape {:?}",
        expected.0, expected.1, got.0, got.1
    )))
}

fn foreign_state() -> Error {
    Error::Argument(
        "sync_state: expected the buffers of one pair, or the same part of both, with the state of \
         that pair, got a buffer or a state of others; take both buffers from one storage, or copy \
         them"
            .into(),
    )
}

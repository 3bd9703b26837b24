//! The border to foreign code: attaching to the interpreter, keeping Python objects alive from memory
//! that may be dropped anywhere, and leaving a pending exception alone while foreign code runs.
//!
//! Whether this thread is attached is asked of CPython, here alone. PyO3 would ask itself: it keeps "an
//! internal counter … monitoring whether this thread is attached to the interpreter", which only its own
//! guards change, and `Python::try_attach` and the drop of a `Py` go by it (`src/internal/state.rs`).
//! But foreign code that is called attached may let go of the interpreter (`PyEval_SaveThread`) before
//! it calls a deleter of dlfield's, as torch does: the count still is positive then, and the thread is
//! not attached.

use std::ffi::c_void;
use std::mem::{ManuallyDrop, transmute};
use std::ops::Deref;
use std::sync::LazyLock;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::ending::{Inside, is_over};

/// Gives the current thread state without a check, or NULL.
type CurrentState = unsafe extern "C" fn() -> *mut ffi::PyThreadState;

/// The function of the running Python. Python 3.13 has given it another name.
static CURRENT_STATE: LazyLock<Option<CurrentState>> = LazyLock::new(|| {
    let names = [c"PyThreadState_GetUnchecked", c"_PyThreadState_UncheckedGet"];
    // SAFETY: looks through what is loaded, Python among it, for a name.
    let places = names.map(|name| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) });
    let found = places.into_iter().find(|place| !place.is_null())?;
    // SAFETY: both names are functions of this type (Python's reference).
    Some(unsafe { transmute::<*mut c_void, CurrentState>(found) })
});

/// True if CPython says that this thread is attached.
///
/// `PyGILState_Check` says yes to every thread once there has been a sub-interpreter. A thread that is
/// attached to a sub-interpreter must not drop objects of the interpreter that imported dlfield:
/// Python 3.11 reports it as detached.
pub(crate) fn is_attached() -> bool {
    let Some(current_state) = *CURRENT_STATE else { return false };
    // SAFETY: for any thread in any state.
    let current = unsafe { current_state() };
    // SAFETY: as above.
    let own = || unsafe { ffi::PyGILState_GetThisThreadState() };
    // Before Python 3.12 all threads share one: the state of the thread that is attached.
    !current.is_null() && (is_per_thread() || current == own())
}

/// True if each thread has a current thread state of its own.
fn is_per_thread() -> bool {
    // SAFETY: a constant of the running Python.
    unsafe { ffi::Py_Version >= 0x030c_0000 }
}

/// Runs `f` attached, and leaves the thread as it was: attached or not. Every entry that foreign code
/// may call goes through here, whatever state the caller should be in.
///
/// `None` if this thread cannot attach any more, since the interpreter has ended, or is ending on
/// another thread. An exception that `f` leaves goes with the thread's state if the thread had none.
pub(crate) fn attached<R>(f: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    let _given_back = if is_attached() { None } else { Some(Held::take()?) };
    // SAFETY: CPython has said that this thread is attached, or has just attached it.
    Some(f(unsafe { Python::assume_attached() }))
}

/// As [`attached`], and PyO3 counts the thread as attached. Otherwise it would drop an exception only
/// later, with the arrays that its frames hold.
pub(crate) fn attached_and_counted<R>(f: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    attached(|_| Python::try_attach(f)).flatten()
}

/// The interpreter, taken for a thread that was without it, until this is dropped.
struct Held(ffi::PyGILState_STATE);

impl Held {
    /// The thread's own state becomes the current one, or a new one if it has none.
    #[cold]
    fn take() -> Option<Self> {
        if is_over() {
            return None;
        }
        // SAFETY: the interpreter ran a moment ago (is_over). A thread that comes too late is suspended.
        let held = Self(unsafe { ffi::PyGILState_Ensure() });
        // It may have begun to end while this thread waited.
        if is_over() { None } else { Some(held) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: what PyGILState_Ensure has given this thread; what has attached since has let go.
        unsafe { ffi::PyGILState_Release(self.0) };
    }
}

/// Runs `f`, which gives something back and so may run any code: with the interpreter, and without
/// harm to a pending exception. Where `attached` gives `None`, `f` leaks with all that it holds.
pub(crate) fn give_back<R>(f: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    let f = ManuallyDrop::new(f);
    // PyO3 drops a `Py` here and now only if it counts this thread as attached.
    let counted = || Python::try_attach(|py| undisturbed(py, || ManuallyDrop::into_inner(f)(py)));
    attached(|_| counted())?
}

/// Runs `f`, which may run Python code, and keeps a pending exception. An exception that `f` leaves
/// is dropped.
fn undisturbed<R>(py: Python<'_>, f: impl FnOnce() -> R) -> R {
    let _inside = Inside::enter(py);
    let mut pending = [std::ptr::null_mut(); 3];
    if PyErr::occurred(py) {
        let [kind, value, traceback] = &mut pending;
        // SAFETY: attached; takes the exception.
        unsafe { ffi::PyErr_Fetch(kind, value, traceback) };
    }
    let result = f();
    let [kind, value, traceback] = pending;
    if !kind.is_null() || PyErr::occurred(py) {
        // SAFETY: attached; gives back exactly what was taken, in place of what f has left.
        unsafe { ffi::PyErr_Restore(kind, value, traceback) };
    }
    result
}

/// Keeps a value whose drop needs the interpreter. Dropping it, on any thread in any state, attaches
/// the interpreter and keeps a pending exception.
///
/// A plain `Py` would wait for the next call of this module if PyO3 cannot see that the interpreter
/// is attached, as in the deleter of a capsule, and end the process if PyO3 sees it where it is not.
pub(crate) struct DropAttached<T>(ManuallyDrop<T>);

impl<T> DropAttached<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T> Deref for DropAttached<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for DropAttached<T> {
    fn drop(&mut self) {
        let _leaks_at_the_end = give_back(|_| {
            // SAFETY: once, here; the value is not used again.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        });
    }
}

/// A value in an object of Python's, which Python frees attached. What the drop of the value runs keeps a
/// pending exception. In memory it is the value, for those who read a capsule.
#[repr(transparent)]
pub(crate) struct InObject<T>(ManuallyDrop<T>);

impl<T> InObject<T> {
    /// # Safety
    /// Dropped attached: a field of a class of Python's, or what a capsule owns.
    pub(crate) unsafe fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T> Deref for InObject<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for InObject<T> {
    fn drop(&mut self) {
        // SAFETY: attached, as the caller of `new` has promised.
        let py = unsafe { Python::assume_attached() };
        undisturbed(py, || {
            // SAFETY: once, here; the value is not used again.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        });
    }
}

/// Takes the exception that a call has set, if any.
pub(crate) fn raised(py: Python<'_>) -> Option<PyErr> {
    if PyErr::occurred(py) { PyErr::take(py) } else { None }
}

/// Takes the exception of a call that has failed, or makes one if there is none.
pub(crate) fn raised_by(py: Python<'_>, what: &str) -> PyErr {
    raised(py).unwrap_or_else(|| {
        PyBufferError::new_err(format!(
            "{what}: expected an exception from a failed call, got none"
        ))
    })
}

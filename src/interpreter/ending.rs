//! The end of the interpreter, for threads that are in the middle of a call.
//!
//! Before Python 3.14 a daemon thread that needs the GIL while the interpreter ends is ended by
//! `pthread_exit`, which unwinds its stack: frames of Rust abort the process then. PyO3 suspends a
//! thread that gets there by attaching. One that gets there in Python code that Rust has called
//! cannot be suspended, so an exit handler waits for such calls. Calls that begin later are
//! suspended at once, as Python 3.14 does.
//!
//! A function that Python calls begins such a call ([`Inside`]) before it runs Python code, or calls
//! one of dlfield's that does. `tests/road.rs` finds the functions that never do.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::ffi;
use pyo3::prelude::*;

/// A call that may run Python code, until this is dropped.
pub(crate) struct Inside {
    outermost: bool,
}

/// Threads inside a call.
static THREADS: AtomicUsize = AtomicUsize::new(0);
static ENDING: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
    /// True on the thread that ends the interpreter.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

impl Inside {
    /// Begins a call. Never returns if the interpreter is ending on another thread.
    pub(crate) fn enter(py: Python<'_>) -> Self {
        let outermost = !IS_INSIDE.replace(true);
        if outermost {
            THREADS.fetch_add(1, Ordering::SeqCst);
            if ENDING.load(Ordering::SeqCst) && !ENDS.get() {
                THREADS.fetch_sub(1, Ordering::SeqCst);
                suspend(py);
            }
        }
        Self { outermost }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if self.outermost {
            IS_INSIDE.set(false);
            THREADS.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// True if a thread that is detached cannot attach any more: the interpreter has ended, or is ending on
/// another thread, which waits for no call of this one.
pub(super) fn is_over() -> bool {
    // SAFETY: for any thread at any time.
    let runs = unsafe { ffi::Py_IsInitialized() } != 0;
    !runs || (ENDING.load(Ordering::SeqCst) && !ENDS.get() && !IS_INSIDE.get())
}

/// Suspends the thread for good, without the GIL.
fn suspend(py: Python<'_>) -> ! {
    py.detach(|| {
        loop {
            std::thread::park();
        }
    })
}

/// How long the end waits for calls of other threads, which it cannot interrupt.
const PATIENCE: Duration = Duration::from_secs(2);

/// The exit handler: lets no other thread begin a call, and waits for those inside one.
#[pyfunction]
fn wait_for_threads(py: Python<'_>) {
    ENDS.set(true);
    ENDING.store(true, Ordering::SeqCst);
    let own = usize::from(IS_INSIDE.get());
    let since = Instant::now();
    py.detach(|| {
        while THREADS.load(Ordering::SeqCst) > own && since.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// In a forked child: the threads of its parent are not there, nor one that ends the interpreter.
#[pyfunction]
fn forget_other_threads() {
    ENDING.store(ENDS.get(), Ordering::SeqCst);
    THREADS.store(usize::from(IS_INSIDE.get()), Ordering::SeqCst);
}

/// Registers the handlers, once.
///
/// # Errors
/// What Python's functions for that raise.
pub(crate) fn prepare_for_the_end(py: Python<'_>) -> PyResult<()> {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.load(Ordering::Relaxed) {
        return Ok(());
    }
    let handler = wrap_pyfunction!(wait_for_threads)(py)?;
    py.import("atexit")?.call_method1("register", (handler,))?;
    let os = py.import("os")?;
    if os.hasattr("register_at_fork")? {
        let handlers = pyo3::types::PyDict::new(py);
        let handler = wrap_pyfunction!(forget_other_threads)(py)?;
        handlers.set_item("after_in_child", handler)?;
        os.call_method("register_at_fork", (), Some(&handlers))?;
    }
    DONE.store(true, Ordering::Relaxed);
    Ok(())
}

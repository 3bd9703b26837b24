//! What keeps memory alive.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

/// Keeps memory alive. Dropping the last clone frees it, on whichever thread that happens.
///
/// Memory that went to another library and came back has an owner of that library that has an owner
/// of dlfield, and so on. Dropping such a chain needs no more stack than dropping a few links: the
/// owners that follow wait until these are gone.
#[derive(Clone)]
pub(crate) struct Owner(Option<Arc<dyn Any + Send + Sync>>);

/// How many owners may be dropped inside each other. Between two of them there may be the code of
/// several libraries.
const DEEPEST: usize = 32;

thread_local! {
    /// How many owners are being dropped inside each other, and how many wait.
    static DROPPING: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    static WAITING: RefCell<Vec<Arc<dyn Any + Send + Sync>>> = const { RefCell::new(Vec::new()) };
}

impl Owner {
    pub(crate) fn new(keeps: impl Any + Send + Sync) -> Self {
        Self(Some(Arc::new(keeps)))
    }

    /// The number of clones.
    #[cfg(any(test, feature = "python"))]
    pub(crate) fn count(&self) -> usize {
        self.0.as_ref().map_or(0, Arc::strong_count)
    }
}

impl<T: Any + Send + Sync> From<Arc<T>> for Owner {
    fn from(keeps: Arc<T>) -> Self {
        Self(Some(keeps))
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner").finish_non_exhaustive()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let Some(last) = self.0.take() else { return };
        if Arc::strong_count(&last) > 1 {
            return; // and if another thread drops the others at the same time, one of them is last
        }
        DROPPING.with(|dropping| match dropping.get() {
            (depth, waiting) if depth >= DEEPEST => {
                // A thread that is ending drops it here and now.
                let _ = WAITING.try_with(|list| list.borrow_mut().push(last));
                dropping.set((depth, waiting.saturating_add(1)));
            }
            (depth, waiting) => {
                dropping.set((depth.saturating_add(1), waiting));
                drop(last);
                while depth == 0 && dropping.get().1 > 0 {
                    dropping.set((1, dropping.get().1.saturating_sub(1)));
                    drop(WAITING.try_with(|list| list.borrow_mut().pop()));
                }
                dropping.set((depth, dropping.get().1));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    static DROPPED: AtomicUsize = AtomicUsize::new(0);

    struct Link {
        _next: Option<Owner>,
    }

    impl Drop for Link {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_long_chain_is_dropped_at_once_on_a_small_stack() {
        let work = || {
            let mut chain = Owner::new(Link { _next: None });
            for _ in 1..100_000 {
                chain = Owner::new(Link { _next: Some(chain) });
            }
            let other = chain.clone();
            drop(chain);
            assert_eq!(DROPPED.load(Ordering::Relaxed), 0);
            drop(other);
            assert_eq!(DROPPED.load(Ordering::Relaxed), 100_000);
        };
        std::thread::Builder::new().stack_size(128 << 10).spawn(work).unwrap().join().unwrap();
    }
}

//! Shares a large copy or fill out over threads.
//!
//! Threads live for one piece of work only, so that the process may fork at any time.
#![forbid(unsafe_code)]

use std::num::NonZero;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Environment variable with the number of threads.
pub(crate) const VARIABLE: &str = "DLFIELD_NUM_THREADS";

/// OpenMP's variable, which GT4Py's stencils read too. The first number of a list counts.
const OPENMP: &str = "OMP_NUM_THREADS";

/// Bytes that justify another thread: starting one takes about as long as moving 100 KB.
const WORTH_A_THREAD: usize = 2 << 20;

/// Argument of [`set_num_threads`]; 0 before the first call.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);

/// Number of threads for a large copy or fill: the argument of [`set_num_threads`], else the
/// environment's `DLFIELD_NUM_THREADS`, else `OMP_NUM_THREADS`, else the number of CPUs.
#[must_use]
pub fn num_threads() -> usize {
    static DEFAULT: OnceLock<usize> = OnceLock::new();
    match CHOSEN.load(Ordering::Relaxed) {
        0 => *DEFAULT.get_or_init(default),
        chosen => chosen,
    }
}

/// Sets the number of threads for large copies and fills in the whole process. Running work is not
/// affected.
pub fn set_num_threads(threads: NonZero<usize>) {
    CHOSEN.store(threads.get(), Ordering::Relaxed);
}

fn default() -> usize {
    let cpus = || thread::available_parallelism().map_or(1, NonZero::get);
    from_environment(VARIABLE).or_else(|| from_environment(OPENMP)).unwrap_or_else(cpus)
}

fn from_environment(name: &str) -> Option<usize> {
    read(&std::env::var(name).ok()?)
}

/// Parses the first number of a list, which must be positive.
pub(crate) fn read(text: &str) -> Option<usize> {
    text.split(',').next()?.trim().parse().ok().filter(|&threads| threads > 0)
}

/// Does `tasks` tasks, which move `bytes` bytes in total, in ranges: one range in this thread, the
/// others in new threads if there are enough bytes. Returns when all tasks are done.
pub(crate) fn share(tasks: usize, bytes: usize, work: impl Fn(Range<usize>) + Sync) {
    let threads = num_threads().min(bytes / WORTH_A_THREAD).min(tasks).max(1);
    let part = |number: usize| tasks * number / threads..tasks * (number + 1) / threads;
    if threads == 1 {
        return work(part(0));
    }
    thread::scope(|scope| {
        let work = &work;
        for number in 1..threads {
            let one = thread::Builder::new().name("dlfield".into());
            if one.spawn_scoped(scope, move || work(part(number))).is_err() {
                work(part(number)); // the system has no more threads
            }
        }
        work(part(0));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn ranges(tasks: usize, bytes: usize) -> Vec<Range<usize>> {
        let seen = Mutex::new(Vec::new());
        share(tasks, bytes, |range| seen.lock().unwrap().push(range));
        let mut seen = seen.into_inner().unwrap();
        seen.sort_by_key(|range| (range.start, range.end));
        seen
    }

    #[test]
    fn every_task_is_done_once_for_any_number_of_threads() {
        for threads in [1, 2, 3, 7] {
            set_num_threads(NonZero::new(threads).unwrap());
            for tasks in [0, 1, 5, 100] {
                let all = ranges(tasks, 64 << 20).into_iter().flatten();
                assert!(all.eq(0..tasks), "{tasks} tasks, {threads} threads");
            }
        }
    }

    #[test]
    fn little_work_starts_no_threads() {
        assert_eq!(ranges(100, 1 << 20).len(), 1);
    }

    #[test]
    fn the_environment_may_hold_a_list_or_nonsense() {
        assert_eq!(read("4,2"), Some(4));
        assert_eq!((read("0"), read("many"), read("")), (None, None, None));
    }
}

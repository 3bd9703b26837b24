//! How many threads work on a large copy or fill, and sharing the work out.
//!
//! Threads are started for one piece of work and are gone after it: a process may fork at any time.
#![forbid(unsafe_code)]

use std::num::NonZero;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Names the number of threads before the program starts.
pub(crate) const VARIABLE: &str = "DLFIELD_NUM_THREADS";

/// What OpenMP's programs read, GT4Py's stencils among them; the first of a list counts.
const OPENMP: &str = "OMP_NUM_THREADS";

/// Bytes that are worth a thread: starting one takes about as long as moving some 100 KB.
const WORTH_A_THREAD: usize = 2 << 20;

/// What [`set_num_threads`] was given; 0 before.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);

/// How many threads share a large copy or fill: what [`set_num_threads`] said, else the environment's
/// `DLFIELD_NUM_THREADS`, else its `OMP_NUM_THREADS`, else as many as the process has CPUs.
#[must_use]
pub fn num_threads() -> usize {
    static AT_FIRST: OnceLock<usize> = OnceLock::new();
    match CHOSEN.load(Ordering::Relaxed) {
        0 => *AT_FIRST.get_or_init(at_first),
        chosen => chosen,
    }
}

/// Sets how many threads share a large copy or fill, in the whole process. Work that has begun goes on
/// with as many as it has.
pub fn set_num_threads(threads: NonZero<usize>) {
    CHOSEN.store(threads.get(), Ordering::Relaxed);
}

fn at_first() -> usize {
    let cpus = || thread::available_parallelism().map_or(1, NonZero::get);
    from_environment(VARIABLE).or_else(|| from_environment(OPENMP)).unwrap_or_else(cpus)
}

fn from_environment(name: &str) -> Option<usize> {
    read(&std::env::var(name).ok()?)
}

/// A positive number, the first of a list.
pub(crate) fn read(text: &str) -> Option<usize> {
    text.split(',').next()?.trim().parse().ok().filter(|&threads| threads > 0)
}

/// Does `tasks` tasks, which move so many `bytes` together, in ranges: one range in this thread and the
/// others in threads of their own, where there are enough bytes. Returns when all are done.
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
                work(part(number)); // the system has no thread to give
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
    fn every_task_is_done_once_however_many_threads_there_are() {
        for threads in [1, 2, 3, 7] {
            set_num_threads(NonZero::new(threads).unwrap());
            for tasks in [0, 1, 5, 100] {
                let all = ranges(tasks, 64 << 20).into_iter().flatten();
                assert!(all.eq(0..tasks), "{tasks} tasks, {threads} threads");
            }
        }
    }

    #[test]
    fn little_work_starts_no_thread() {
        assert_eq!(ranges(100, 1 << 20).len(), 1);
    }

    #[test]
    fn the_environment_may_hold_a_list_and_nonsense() {
        assert_eq!(read("4,2"), Some(4));
        assert_eq!((read("0"), read("many"), read("")), (None, None, None));
    }
}

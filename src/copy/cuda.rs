//! Doing a copy in which a device takes part.
//!
//! Memory that both sides reach counts as the device's here. What the driver cannot move in one go
//! goes by a block without gaps: on the device where the host's side has long rows, on the host where
//! it has not.

use smallvec::SmallVec;

use super::host;
use super::plan::{CopyPlan, Loop, plan};
use super::route::{Launch, Move, Moves, launch, moves};
use crate::alloc::{Fill, allocate, allocate_for, plan as plan_memory};
use crate::cuda::{
    Kind, Pitched, Side, Stream, copy_2d, copy_3d, copy_linear, copy_peer, launch as run,
};
use crate::device::DeviceKind;
use crate::error::{Error, Result};
use crate::managed::Managed;

/// Calls of the driver for one copy: where a kernel does it in one, and where every row would have to
/// go by a block of memory without gaps.
const FEW_CALLS: usize = 2;
const MANY_CALLS: usize = 64;

/// Whether memory is of CUDA, and so one that a copy may start from or end at.
pub(super) fn reaches(side: &Managed) -> bool {
    side.device().kind == DeviceKind::Cuda
}

/// Whether a device makes the copy: it must where a side is its own, and does so where both are
/// managed.
pub(super) fn takes_part(source: &Managed, target: &Managed) -> bool {
    let managed = |side: &Managed| side.device().kind == DeviceKind::CudaManaged;
    reaches(source) || reaches(target) || (managed(source) && managed(target))
}

/// Numbers of the devices that have source and target; `None`: the host. Managed memory is where the
/// other side is.
fn places(source: &Managed, target: &Managed) -> (Option<i32>, Option<i32>) {
    let own = |side: &Managed| reaches(side).then_some(side.device().ordinal);
    let shared = |side: &Managed, other: &Managed| {
        let managed = side.device().kind == DeviceKind::CudaManaged;
        let there = own(other).unwrap_or(side.device().ordinal);
        own(side).or(managed.then_some(there))
    };
    (shared(source, target), shared(target, source))
}

/// Copies every element of `source` to the same index of `target`.
///
/// # Errors
/// As [`super::copy`].
///
/// # Safety
/// As [`super::copy`], which has checked both, and that a device takes part.
pub(super) unsafe fn copy(source: &Managed, target: &Managed) -> Result<()> {
    let plan = plan(source.layout(), target.layout())?;
    if source.layout().size() == 0 {
        return Ok(());
    }
    let moves = moves(&plan);
    let (from, to) = places(source, target);
    let one_device = from == to && from.is_some();
    let Some(number) = to.or(from) else {
        return Err(Error::Buffer("copy: expected a device, got host memory twice".into()));
    };
    let two_devices = from.is_some() && to.is_some() && !one_device;
    let worth_it = |moves: &Moves| match (one_device, two_devices) {
        (true, _) => moves.are_worth_it(FEW_CALLS),
        (_, true) => is_single(moves), // rows are the driver's within one device
        _ => is_single(moves) || moves.are_worth_it(MANY_CALLS),
    };
    match moves {
        Some(moves) if worth_it(&moves) => {
            // SAFETY: the plan stays within both; the caller's promise.
            put(source, target, number, |stream| unsafe {
                move_all(source, target, &moves, stream)
            })
        }
        _ if one_device => {
            let launch = kernel(&plan, source, target);
            // SAFETY: as above.
            put(source, target, number, |stream| unsafe {
                launch_all(source, target, &launch, stream)
            })
        }
        // SAFETY: the caller's promise.
        _ => unsafe { detour(source, target) },
    }
}

fn is_single(moves: &Moves) -> bool {
    moves.loops.is_empty() && matches!(moves.one, Move::Linear { .. })
}

fn kernel(plan: &CopyPlan, source: &Managed, target: &Managed) -> Launch {
    launch(plan, [source.address(), target.address()])
}

/// Puts work on the stream of a device, after all that is known of on both sides, and notes it there.
fn put(
    source: &Managed,
    target: &Managed,
    number: i32,
    work: impl FnOnce(Stream) -> Result<()>,
) -> Result<()> {
    let stream = Stream::current(number)?;
    let timelines = [source.timeline(), target.timeline()];
    for timeline in timelines.into_iter().flatten() {
        timeline.join(stream)?; // WAIT for what is in flight on both sides
    }
    let done = work(stream);
    for timeline in timelines.into_iter().flatten() {
        timeline.leave(stream)?;
    }
    if [source, target].into_iter().any(is_seen) {
        stream.wait()?; // WAIT since whoever has the host memory cannot know of the copy
    }
    done
}

/// Whether somebody on the host may touch the memory without asking dlfield.
fn is_seen(side: &Managed) -> bool {
    let seen = side.timeline().is_none_or(|timeline| timeline.is_handed_out());
    seen && side.device().is_host()
}

/// By way of a block without gaps.
///
/// # Safety
/// As [`copy`].
unsafe fn detour(source: &Managed, target: &Managed) -> Result<()> {
    match places(source, target) {
        // Between devices: both ends without gaps.
        (Some(from), Some(_)) if !is_dense(source)? => {
            let dense = beside(source, Some(from))?;
            // SAFETY: `dense` was made here; the caller's promise for the source.
            unsafe { copy(source, &dense) }?;
            // SAFETY: as above, for the target.
            unsafe { copy(&dense, target) }
        }
        (Some(_), Some(to)) => {
            let dense = beside(source, Some(to))?;
            // SAFETY: as above.
            unsafe { copy(source, &dense) }?;
            // SAFETY: as above.
            unsafe { copy(&dense, target) }
        }
        // SAFETY: as above.
        (None, Some(to)) => unsafe { upload(source, target, to) },
        // SAFETY: as above.
        (Some(from), _) => unsafe { download(source, target, from) },
        (None, None) => Err(Error::Buffer("copy: expected a device, got host memory twice".into())),
    }
}

/// # Safety
/// As [`copy`], from host memory.
unsafe fn upload(source: &Managed, target: &Managed, to: i32) -> Result<()> {
    let once = without_repeats(source)?;
    if !is_easy(&once, &once)? {
        let packed = beside(&once, None)?;
        // SAFETY: `packed` was made here; the caller's promise for the source.
        unsafe { host::copy(&once, &packed) }?;
        let packed = packed.broadcast_to(source.layout().shape())?;
        // SAFETY: as above, for the target.
        return unsafe { upload(&packed, target, to) };
    }
    let dense = beside(&once, Some(to))?;
    // SAFETY: as above.
    unsafe { copy(&once, &dense) }?;
    let dense = dense.broadcast_to(source.layout().shape())?;
    // SAFETY: as above.
    unsafe { copy(&dense, target) }
}

/// # Safety
/// As [`copy`], to host memory.
unsafe fn download(source: &Managed, target: &Managed, from: i32) -> Result<()> {
    let dense = beside(target, Some(from))?;
    // SAFETY: `dense` was made here; the caller's promise for the source.
    unsafe { copy(source, &dense) }?;
    if is_easy(&dense, target)? {
        // SAFETY: as above, for the target.
        return unsafe { copy(&dense, target) };
    }
    let packed = beside(target, None)?;
    // SAFETY: both were made here.
    unsafe { copy(&dense, &packed) }?;
    // SAFETY: `packed` is host memory that nobody tracks, so that it has been waited for. So is the target:
    // what dlfield makes for copies to a device has no gaps, and was easy above.
    unsafe { host::copy(&packed, target) }
}

/// Whether the driver moves from `source`, or to `target`, a block that lies like it without gaps.
fn is_easy(source: &Managed, target: &Managed) -> Result<bool> {
    let dense = plan_beside(target)?.layout;
    let moved = if source.layout().places_like(target.layout()) {
        plan(source.layout(), &dense)?
    } else {
        plan(&dense, target.layout())?
    };
    Ok(moves(&moved).is_some_and(|moves| moves.are_worth_it(MANY_CALLS)))
}

fn is_dense(side: &Managed) -> Result<bool> {
    Ok(side.layout().places_like(&plan_beside(side)?.layout))
}

/// Each element once, where it is repeated along a dimension: the first along each such.
fn without_repeats(source: &Managed) -> Result<Managed> {
    let repeated = |axis: &usize| source.layout().strides().get(*axis) == Some(&0);
    let axes: SmallVec<[usize; 6]> = (0..source.layout().ndim()).filter(repeated).collect();
    axes.into_iter().try_fold(source.clone(), |source, axis| source.narrow(axis, 0, 1))
}

fn plan_beside(model: &Managed) -> Result<crate::alloc::Plan> {
    let layout = model.layout();
    plan_memory(layout.shape(), model.dtype(), &layout.ranks(&[]), 1, &[])
}

/// Memory like that of `model` without gaps, on a device or (`None`) on the host.
fn beside(model: &Managed, on: Option<i32>) -> Result<Managed> {
    let plan = plan_beside(model)?;
    match on {
        Some(ordinal) => allocate_for(&plan, Kind::Device, ordinal, Fill::Nothing),
        None => allocate(&plan, Fill::Nothing),
    }
}

/// Calls `f` at every position that `loops` reach.
fn at_each(
    loops: &[Loop],
    source: u64,
    target: u64,
    f: &mut impl FnMut(u64, u64) -> Result<()>,
) -> Result<()> {
    let Some((outer, inner)) = loops.split_first() else {
        return f(source, target);
    };
    let (mut source, mut target) = (source, target);
    for _ in 0..outer.count {
        at_each(inner, source, target, f)?;
        source = source.wrapping_add_signed(outer.source as i64);
        target = target.wrapping_add_signed(outer.target as i64);
    }
    Ok(())
}

/// # Safety
/// As [`copy`]; the moves are those of a plan for the two.
unsafe fn move_all(
    source: &Managed,
    target: &Managed,
    moves: &Moves,
    stream: Stream,
) -> Result<()> {
    let (from, to) = places(source, target);
    let peers = from.zip(to).filter(|(from, to)| from != to);
    at_each(
        &moves.loops,
        source.address() as u64,
        target.address() as u64,
        &mut |source, target| {
            match (moves.one, peers) {
                (Move::Linear { bytes }, Some((from, to))) => {
                    // SAFETY: the caller's promise for this position.
                    unsafe { copy_peer((target, to), (source, from), bytes, stream) }
                }
                (Move::Linear { bytes }, None) => {
                    // SAFETY: as above.
                    unsafe { copy_linear(target, source, bytes, stream) }
                }
                (Move::Rows { width, rows }, _) => {
                    let side = |address, on: Option<i32>, pitch| Side {
                        address,
                        on_host: on.is_none(),
                        pitch,
                        rows: 0,
                    };
                    let (source, target) =
                        (side(source, from, rows.source), side(target, to, rows.target));
                    // SAFETY: as above.
                    unsafe {
                        copy_2d(
                            &Pitched { source, target, width, height: rows.count, depth: 1 },
                            stream,
                        )
                    }
                }
                (Move::Planes { width, rows, planes, apart }, _) => {
                    let side = |address, on: Option<i32>, pitch, rows| Side {
                        address,
                        on_host: on.is_none(),
                        pitch,
                        rows,
                    };
                    let source = side(source, from, rows.source, apart.0);
                    let target = side(target, to, rows.target, apart.1);
                    // SAFETY: as above.
                    unsafe {
                        copy_3d(
                            &Pitched { source, target, width, height: rows.count, depth: planes },
                            stream,
                        )
                    }
                }
            }
        },
    )
}

/// # Safety
/// As [`copy`], on one device; the launch is one for the two.
unsafe fn launch_all(
    source: &Managed,
    target: &Managed,
    launch: &Launch,
    stream: Stream,
) -> Result<()> {
    at_each(
        &launch.loops,
        source.address() as u64,
        target.address() as u64,
        &mut |source, target| {
            let arguments = crate::cuda::Arguments { source, target, ..launch.arguments };
            // SAFETY: the walks are those of a plan for the two, which stay within them; the caller's
            // promise for both.
            unsafe { run(launch.name, (launch.grid, launch.block), &arguments, stream) }
        },
    )
}

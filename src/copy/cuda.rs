//! Carries out a copy in which a device takes part.
//!
//! Memory that host and device reach counts as the device's here. Copies that the driver cannot do
//! in one go take a detour through a block without gaps: on the device if the host's side has long
//! rows, else on the host.

use smallvec::SmallVec;

use super::host;
use super::plan::{Loop, plan};
use super::route::{Launch, Move, Moves, launch, moves, suits_a_kernel};
use crate::alloc::{Fill, Plan, allocate, allocate_for};
use crate::cuda::{
    Arguments, Kind, Pitched, PitchedSide, Stream, copy_linear, copy_peer, copy_planes,
    launch as run,
};
use crate::device::DeviceKind;
use crate::error::{Error, Result};
use crate::managed::Managed;

/// Maximum number of calls of the driver for one copy, if the alternative is a kernel, or a detour
/// through a block without gaps.
const FEW_CALLS: usize = 2;
const MANY_CALLS: usize = 64;

/// True for memory of a CUDA device.
pub(super) fn is_on_device(side: &Managed) -> bool {
    side.device().kind == DeviceKind::Cuda
}

fn is_managed(side: &Managed) -> bool {
    side.device().kind == DeviceKind::CudaManaged
}

/// True if a device makes the copy: if a side is its memory, or both are managed.
pub(super) fn takes_part(source: &Managed, target: &Managed) -> bool {
    is_on_device(source) || is_on_device(target) || (is_managed(source) && is_managed(target))
}

/// Numbers of the devices of source and target; `None` for the host. Managed memory counts as the
/// other side's.
fn devices(source: &Managed, target: &Managed) -> (Option<i32>, Option<i32>) {
    let number = |side: &Managed, other: &Managed| {
        let from = if is_managed(side) && is_on_device(other) { other } else { side };
        (is_on_device(from) || is_managed(from)).then_some(from.device().ordinal)
    };
    (number(source, target), number(target, source))
}

/// Copies every element of `source` to the same index of `target`.
///
/// # Errors
/// As [`super::copy`].
///
/// # Safety
/// As [`super::copy`], which has checked both. A device takes part.
pub(super) unsafe fn copy(source: &Managed, target: &Managed) -> Result<()> {
    let plan = plan(source.layout(), target.layout())?;
    if source.layout().size() == 0 {
        return Ok(());
    }
    let (from, to) = devices(source, target);
    let Some(number) = to.or(from) else {
        return Err(Error::Buffer(
            "copy: expected memory of a device, got host memory on both sides".into(),
        ));
    };
    let worth_it = |moves: &Moves| match (from, to) {
        _ if matches!(moves.one, Move::Linear { .. }) => true,
        // Within one device a kernel is faster.
        _ if from == to => {
            let managed = is_managed(source) && is_managed(target);
            let faster = suits_a_kernel(&plan, [source.position(), target.position()]);
            (managed || !faster) && moves.are_worth_it(FEW_CALLS)
        }
        // The driver copies rows within one device only.
        (Some(_), Some(_)) => false,
        _ => moves.are_worth_it(MANY_CALLS),
    };
    if let Some(moves) = moves(&plan).filter(worth_it) {
        // SAFETY: the moves belong to the plan; the caller excludes other accesses.
        return enqueue(source, target, number, |stream| unsafe {
            move_all(source, target, &moves, stream)
        });
    }
    match (from, to) {
        _ if from == to => {
            let launch = launch(&plan, [source.position(), target.position()]);
            // SAFETY: the launch belongs to the plan; the caller excludes other accesses.
            enqueue(source, target, number, |stream| unsafe {
                launch_all(source, target, &launch, stream)
            })
        }
        // SAFETY: the caller excludes other accesses.
        (None, _) => unsafe { upload(source, target, number) },
        // SAFETY: the caller excludes other accesses.
        (_, None) => unsafe { download(source, target, number) },
        (Some(from), Some(to)) => {
            // Copies between devices need both ends without gaps.
            let on = if source.layout().is_dense() { to } else { from };
            let dense = allocate_like(source, Some(on))?;
            // SAFETY: `dense` is new; the caller excludes other accesses.
            unsafe { copy_through(source, &dense, target) }
        }
    }
}

/// Enqueues work on the stream of a device after all known work on both sides, and records it.
fn enqueue(
    source: &Managed,
    target: &Managed,
    number: i32,
    work: impl FnOnce(Stream) -> Result<()>,
) -> Result<()> {
    let stream = Stream::current(number)?;
    let timelines = [source.timeline(), target.timeline()];
    for timeline in timelines.into_iter().flatten() {
        timeline.join(stream)?; // WAIT for work in flight on both sides
    }
    let done = work(stream);
    for timeline in timelines.into_iter().flatten() {
        timeline.leave(stream)?;
    }
    if source.is_shared_with_host() || target.is_shared_with_host() {
        stream.wait()?; // WAIT since users of the host memory do not know of the copy
    }
    done
}

/// Copies through a new block, of which one side at least is on a device too.
///
/// # Safety
/// As [`copy`].
unsafe fn copy_through(source: &Managed, block: &Managed, target: &Managed) -> Result<()> {
    // SAFETY: `block` is new; the caller excludes writers of the source.
    unsafe { copy(source, block) }?;
    // SAFETY: `block` is new; the caller excludes other users of the target.
    unsafe { copy(block, target) }
}

/// Copies from the host through a block without gaps on the device.
///
/// # Safety
/// As [`copy`], from host memory.
unsafe fn upload(source: &Managed, target: &Managed, to: i32) -> Result<()> {
    let once = without_repeats(source)?;
    if !is_easy(&once, &once)? {
        let packed = allocate_like(&once, None)?;
        // SAFETY: `packed` is new; the caller excludes writers of the source.
        unsafe { host::copy(&once, &packed) }?;
        let packed = packed.broadcast_to(source.layout().shape())?;
        // SAFETY: `packed` is new; the caller excludes other users of the target.
        return unsafe { upload(&packed, target, to) };
    }
    let dense = allocate_like(&once, Some(to))?;
    // SAFETY: `dense` is new; the caller excludes writers of the source.
    unsafe { copy(&once, &dense) }?;
    let dense = dense.broadcast_to(source.layout().shape())?;
    // SAFETY: `dense` is new; the caller excludes other users of the target.
    unsafe { copy(&dense, target) }
}

/// Copies to the host through a block without gaps on the device.
///
/// # Safety
/// As [`copy`], to host memory.
unsafe fn download(source: &Managed, target: &Managed, from: i32) -> Result<()> {
    let dense = allocate_like(target, Some(from))?;
    if is_easy(&dense, target)? {
        // SAFETY: `dense` is new; the caller excludes other accesses.
        return unsafe { copy_through(source, &dense, target) };
    }
    let packed = allocate_like(target, None)?;
    // SAFETY: `packed` is new too; the caller excludes writers of the source.
    unsafe { copy_through(source, &dense, &packed) }?;
    // SAFETY: `packed` has no timeline, so the copy into it was waited for (enqueue). Nor has the
    // target: host memory that dlfield makes for copies to a device has no gaps, and is easy.
    unsafe { host::copy(&packed, target) }
}

/// True if the driver copies between `source` or `target` and a like block without gaps.
fn is_easy(source: &Managed, target: &Managed) -> Result<bool> {
    let dense = Plan::like(target.layout(), target.dtype())?.layout;
    let moved = if source.layout().places_like(target.layout()) {
        plan(source.layout(), &dense)?
    } else {
        plan(&dense, target.layout())?
    };
    Ok(moves(&moved).is_some_and(|moves| moves.are_worth_it(MANY_CALLS)))
}

/// Keeps one index along each dimension that repeats its elements.
fn without_repeats(source: &Managed) -> Result<Managed> {
    let repeated = |axis: &usize| source.layout().strides().get(*axis) == Some(&0);
    let axes: SmallVec<[usize; 6]> = (0..source.layout().ndim()).filter(repeated).collect();
    axes.into_iter().try_fold(source.clone(), |source, axis| source.narrow(axis, 0, 1))
}

/// Allocates memory like `model` without gaps, on a device or (`None`) on the host.
fn allocate_like(model: &Managed, on: Option<i32>) -> Result<Managed> {
    let plan = Plan::like(model.layout(), model.dtype())?;
    match on {
        Some(ordinal) => allocate_for(&plan, Kind::Device, ordinal, Fill::Nothing),
        None => allocate(&plan, Fill::Nothing),
    }
}

/// Addresses of the first elements.
fn first_bytes(source: &Managed, target: &Managed) -> (u64, u64) {
    (source.position() as u64, target.position() as u64)
}

/// Calls `f` at every position that `loops` reach.
fn at_each(
    loops: &[Loop],
    (mut source, mut target): (u64, u64),
    f: &mut impl FnMut(u64, u64) -> Result<()>,
) -> Result<()> {
    let Some((outer, inner)) = loops.split_first() else {
        return f(source, target);
    };
    for _ in 0..outer.count {
        at_each(inner, (source, target), f)?;
        source = source.wrapping_add_signed(outer.source as i64);
        target = target.wrapping_add_signed(outer.target as i64);
    }
    Ok(())
}

/// Enqueues the moves of the driver.
///
/// # Safety
/// As [`copy`]; the moves belong to a plan for the two.
unsafe fn move_all(
    source: &Managed,
    target: &Managed,
    moves: &Moves,
    stream: Stream,
) -> Result<()> {
    let (from, to) = devices(source, target);
    let peers = from.zip(to).filter(|(from, to)| from != to);
    at_each(&moves.loops, first_bytes(source, target), &mut |source, target| {
        match (moves.one, peers) {
            (Move::Linear { bytes }, Some((from, to))) => {
                // SAFETY: the plan stays within both; the caller excludes other accesses.
                unsafe { copy_peer((target, to), (source, from), bytes, stream) }
            }
            (Move::Linear { bytes }, None) => {
                // SAFETY: as for copy_peer.
                unsafe { copy_linear(target, source, bytes, stream) }
            }
            (Move::Planes { width, rows, planes, apart }, _) => {
                let source = PitchedSide::new(source, from.is_none(), rows.source, apart.0);
                let target = PitchedSide::new(target, to.is_none(), rows.target, apart.1);
                let copy = Pitched { source, target, width, height: rows.count, depth: planes };
                // SAFETY: as for copy_peer.
                unsafe { copy_planes(&copy, stream) }
            }
        }
    })
}

/// Enqueues the launches of a kernel.
///
/// # Safety
/// As [`copy`], on one device; the launch belongs to a plan for the two.
unsafe fn launch_all(
    source: &Managed,
    target: &Managed,
    launch: &Launch,
    stream: Stream,
) -> Result<()> {
    at_each(&launch.loops, first_bytes(source, target), &mut |source, target| {
        let arguments = Arguments { source, target, ..launch.arguments };
        // SAFETY: the plan stays within both; the caller excludes other accesses.
        unsafe { run(launch.name, launch.size, &arguments, stream) }
    })
}

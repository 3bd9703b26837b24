//! Whether the memory of an argument is where and as the stencil needs it, and as it likes it.

use smallvec::SmallVec;

use super::bound::Bound;
use super::{Mismatch, OnMismatch, StencilSpec};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::layout::{Extents, falls_along};

/// Why the stencil gets a copy of each argument; `None`: it gets the argument. In a functional call
/// what it writes is a copy already.
///
/// # Errors
/// [`Error::Buffer`] where copies are not wanted, or would not help.
pub(super) fn mismatches(
    spec: &StencilSpec,
    bound: &[Bound<'_>],
    functional: bool,
) -> Result<SmallVec<[Option<Mismatch>; 8]>> {
    let of = |field: &Bound<'_>| {
        if functional && field.spec.access.writes() { Ok(None) } else { mismatch(spec, field) }
    };
    let copies = bound.iter().map(of).collect::<Result<_>>()?;
    check_one_device(bound)?;
    Ok(copies)
}

fn mismatch(spec: &StencilSpec, field: &Bound<'_>) -> Result<Option<Mismatch>> {
    let device = field.argument.managed.device();
    if let Some(text) = &field.argument.brought {
        return Ok(Some(Mismatch::Device(about(field, text))));
    }
    if !spec.target.reaches(device) {
        return elsewhere(spec, field, device);
    }
    let Some(text) = unusable(spec, field) else { return Ok(None) };
    if spec.on_memory == OnMismatch::Copy && device.is_host() {
        return Ok(Some(Mismatch::Memory(about(field, &text))));
    }
    let way_out = if device.is_host() {
        ", or let bind make one at each call: on_mismatch={\"memory\": \"copy\"}"
    } else {
        ""
    };
    let copy = if field.argument.managed.is_aligned() && field.argument.stands_for.is_none() {
        "dlfield.storage(x, layout=..., alignment_size=...)"
    } else {
        "x.copy()"
    };
    Err(Error::Buffer(format!("{}; pass a copy, for example {copy}{way_out}", about(field, &text))))
}

/// Memory that the stencil does not reach. From one device to another nothing is copied.
fn elsewhere(spec: &StencilSpec, field: &Bound<'_>, device: Device) -> Result<Option<Mismatch>> {
    let text = about(field, &format!("expected memory of {}, got {device}", spec.target));
    if !device.is_host() {
        return Err(Error::Buffer(format!(
            "{text}; copy it there by the means of its own library"
        )));
    }
    match spec.on_device {
        OnMismatch::Copy => Ok(Some(Mismatch::Device(text))),
        OnMismatch::Raise => Err(Error::Buffer(format!(
            "{text}; copy it there first, or let bind do so at each call: on_mismatch={{\"device\": \"copy\"}}"
        ))),
    }
}

/// Memory of devices is of one device, but for what every device reaches.
fn check_one_device(bound: &[Bound<'_>]) -> Result<()> {
    let on_device = |field: &&Bound<'_>| !field.argument.managed.device().is_host();
    let mut fields = bound.iter().filter(on_device);
    let Some(first) = fields.next() else { return Ok(()) };
    let here = first.argument.managed.device();
    match fields.find(|field| field.argument.managed.device() != here) {
        None => Ok(()),
        Some(other) => Err(Error::Buffer(format!(
            "{}: expected memory of {here}, as '{}' has, got {}; copy it there by the means of its own library",
            other.about(),
            first.spec.name,
            other.argument.managed.device()
        ))),
    }
}

fn about(field: &Bound<'_>, text: &str) -> String {
    format!("{}: {text}", field.about())
}

/// What stands in the way of reading the memory as the stencil does.
fn unusable(spec: &StencilSpec, field: &Bound<'_>) -> Option<String> {
    let managed = &field.argument.managed;
    if let Some(original) = &field.argument.stands_for {
        return Some(original.text.clone());
    }
    if spec.typed && !managed.is_aligned() {
        let boundary = managed.dtype().alignment();
        return Some(format!(
            "expected items aligned to {boundary} bytes, got ones {} bytes behind such a boundary",
            managed.address().checked_rem(boundary).unwrap_or(0)
        ));
    }
    if !spec.typed {
        return None; // what is declared of the memory makes it slow at worst
    }
    declared(field)
}

/// What the declaration demands of the memory and the argument does not have.
fn declared(field: &Bound<'_>) -> Option<String> {
    match &field.spec.ranks {
        Some(ranks) if !is_ordered(field, ranks) => Some(out_of_order(field, ranks)),
        _ => misplaced(field),
    }
}

fn out_of_order(field: &Bound<'_>, ranks: &Extents) -> String {
    let strides = field.argument.managed.layout().strides();
    let ordered: Extents =
        field.axes.iter().filter_map(|&axis| strides.get(axis).copied()).collect();
    format!(
        "expected memory ordered as {:?}, got strides of {:?} elements",
        ranks.as_slice(),
        ordered.as_slice()
    )
}

/// Whether the first point of the domain is off the boundary that the declaration asks for.
fn misplaced(field: &Bound<'_>) -> Option<String> {
    let managed = &field.argument.managed;
    let wanted = i128::try_from(field.spec.alignment).unwrap_or(1);
    if wanted <= 1 || managed.layout().size() == 0 {
        return None;
    }
    let strides = managed.layout().byte_strides();
    let first = field.axes.iter().zip(&field.origin).fold(
        managed.address() as i128,
        |sum, (&axis, &at)| {
            sum + i128::from(strides.get(axis).copied().unwrap_or(0)) * i128::from(at)
        },
    );
    let inner =
        managed.layout().axes().filter(|axis| axis.0 > 1).map(|axis| axis.1.unsigned_abs()).min();
    let rows = managed.layout().axes().zip(strides).all(|((extent, stride), &bytes)| {
        extent <= 1 || Some(stride.unsigned_abs()) == inner || i128::from(bytes) % wanted == 0
    });
    (first % wanted != 0 || !rows).then(|| {
        format!(
            "expected the first point of the domain in every row on a boundary of {wanted} bytes, got one {} \
             bytes behind such a boundary and strides of {:?} bytes",
            first % wanted,
            strides
        )
    })
}

fn is_ordered(field: &Bound<'_>, ranks: &Extents) -> bool {
    let layout = field.argument.managed.layout();
    let extent_and_stride = |&axis: &usize| {
        let get = |from: &[i64]| from.get(axis).copied().unwrap_or(0);
        (get(layout.shape()), get(layout.strides()))
    };
    falls_along(ranks, field.axes.iter().map(extent_and_stride))
}

/// What works but is slower than it could be: memory that is not ordered as the backend likes it,
/// and what a declaration demands where the backend reads any memory.
pub(super) fn slow(spec: &StencilSpec, bound: &[Bound<'_>]) -> Vec<String> {
    bound.iter().filter_map(|field| slow_field(spec, field)).collect()
}

fn slow_field(spec: &StencilSpec, field: &Bound<'_>) -> Option<String> {
    let text = match (&field.spec.ranks, &field.spec.fast) {
        _ if !spec.typed
            && let Some(text) = declared(field) =>
        {
            text
        }
        (None, Some(fast)) if !is_ordered(field, fast) => {
            let layout = field.argument.managed.layout().permute(&field.axes).ok()?;
            format!(
                "expected memory ordered as {:?}, in which '{}' is fast, got {:?}",
                fast.as_slice(),
                spec.backend,
                layout.ranks(&[]).as_slice() // no strides: the text is the same for every size
            )
        }
        _ => return None,
    };
    Some(format!("{}: {text}", field.about()))
}

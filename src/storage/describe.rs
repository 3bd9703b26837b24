//! A storage in words.

use std::fmt;

use super::{Residence, Storage};
use crate::device::{Device, DeviceKind};
use crate::field::show_dims;
use crate::sync::Newer;

/// One line about the storage, without its values: the first line of the Python `repr`.
impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&parts(self).join(", "))
    }
}

fn parts(storage: &Storage) -> Vec<String> {
    let (host, field) = (storage.managed(), storage.field());
    let mut parts =
        vec![format!("shape={}", tuple(host.layout().shape())), format!("dtype={}", host.dtype())];
    if let Some(dims) = &field.dims {
        parts.push(format!("dims={}", show_dims(dims)));
    }
    match &field.halo {
        Some(halo) if halo.iter().any(|&width| width != (0, 0)) => {
            let widths: Vec<_> =
                halo.iter().map(|(low, high)| format!("({low}, {high})")).collect();
            let comma = if widths.len() == 1 { "," } else { "" };
            parts.push(format!("halo=({}{comma})", widths.join(", ")));
        }
        Some(_) => {}
        None => parts.push("halo=None".into()),
    }
    parts.push(format!("layout={}", tuple(&storage.ranks())));
    if field.alignment > 1 {
        parts.push(format!("alignment_size={}", field.alignment));
    }
    parts.push(format!("device={}", device(storage)));
    match storage.sync_state().map(|state| state.newer()) {
        Some(Newer::Neither) => parts.push("in sync".into()),
        Some(Newer::Host) => parts.push("host modified".into()),
        Some(Newer::Device) => parts.push("device modified".into()),
        None => {}
    }
    if host.readonly() {
        parts.push("readonly".into());
    }
    parts
}

/// The device that has a buffer, where one has.
fn device(storage: &Storage) -> Device {
    let own = storage.managed().device();
    match storage.residence() {
        Residence::Mirrored(ordinal) => Device { kind: DeviceKind::Cuda, ordinal },
        _ => own,
    }
}

/// As Python prints a tuple of ints.
fn tuple(numbers: &[i64]) -> String {
    let shown: Vec<_> = numbers.iter().map(i64::to_string).collect();
    match shown.as_slice() {
        [one] => format!("({one},)"),
        all => format!("({})", all.join(", ")),
    }
}

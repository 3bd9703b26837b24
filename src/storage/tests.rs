//! Tests of storages: wrapping checks the memory, copies keep the order, views share memory.

use super::{Order, Spec, Storage};
use crate::alloc::Fill;
use crate::dtype::DType;
use crate::error::Error;
use crate::field::{Dim, Field};
use crate::preset::Preset;
use smallvec::smallvec;

fn with_halo(shape: &[i64], preset: &str) -> Storage {
    let field = Field { halo: Some(smallvec![(3, 3), (3, 2), (0, 0)]), ..Field::default() };
    let spec = Spec { preset: Some(Preset::from_name(preset).unwrap()), field, ..Spec::default() };
    Storage::allocate(shape, DType::Float64, &spec, Fill::Zeros).unwrap()
}

#[test]
fn the_domain_view_starts_after_the_lower_halo_and_has_no_halo() {
    let storage = with_halo(&[10, 9, 4], "gt:cpu_kfirst");
    let domain = storage.domain_view().unwrap();
    assert_eq!(domain.managed().layout().shape(), [4, 4, 4]);
    assert_eq!(domain.managed().address() - storage.managed().address(), (3 * 36 + 3 * 4) * 8);
    assert!(domain.field().halo.iter().flatten().all(|&width| width == (0, 0)));
}

#[test]
fn wrapping_memory_in_another_order_than_requested_is_refused() {
    let host = with_halo(&[10, 9, 4], "gt:cpu_kfirst").managed().clone();
    let spec =
        Spec { preset: Some(Preset::from_name("gt:cpu_ifirst").unwrap()), ..Spec::default() };
    let error = Storage::wrap(host.clone(), &spec).unwrap_err().to_string();
    assert!(error.contains("ordered as [2, 1, 0]") && error.contains("make a copy"), "{error}");
    assert!(Storage::wrap(host, &Spec::default()).is_ok());
}

#[test]
fn wrapping_rows_off_the_requested_boundary_is_refused() {
    let host = with_halo(&[10, 9, 4], "gt:cpu_kfirst").managed().clone();
    let aligned = |alignment| Spec { alignment: Some(alignment), ..Spec::default() };
    assert!(Storage::wrap(host.clone(), &aligned(32)).is_ok(), "rows of 4 * 8 bytes");
    assert!(Storage::wrap(host, &aligned(64)).is_err());
}

#[test]
fn a_copy_keeps_the_order_of_its_source_unless_told_otherwise() {
    let source = with_halo(&[10, 9, 4], "gt:cpu_ifirst");
    // SAFETY: no other code has the source.
    let same = unsafe { Storage::copy_of(source.managed(), &Spec::default()) }.unwrap();
    assert_eq!(same.ranks().as_slice(), [2, 1, 0]);
    let spec = Spec { layout: Order::Ranks(smallvec![0, 1, 2]), ..Spec::default() };
    // SAFETY: as above.
    let other = unsafe { Storage::copy_of(source.managed(), &spec) }.unwrap();
    assert!(other.managed().layout().is_c_contiguous());
}

#[test]
fn a_gpu_preset_is_refused_without_a_gpu() {
    if crate::cuda::device_count().is_ok() {
        return;
    }
    let spec = Spec { preset: Some(Preset::from_name("gt:gpu").unwrap()), ..Spec::default() };
    let refused = Storage::allocate(&[2], DType::Float64, &spec, Fill::Zeros);
    assert!(matches!(refused, Err(Error::Device(_))));
}

#[test]
fn the_description_leaves_out_labels_that_are_not_set() {
    let text = with_halo(&[10, 9, 4], "gt:cpu_ifirst").to_string();
    assert_eq!(
        text,
        "shape=(10, 9, 4), dtype=float64, halo=((3, 3), (3, 2), (0, 0)), layout=(2, 1, 0), device=cpu"
    );
}

#[test]
fn renamed_dims_share_the_memory_and_must_differ() {
    let field = Storage::builder([4, 3]).dims(["x", "y"]).zeros::<i32>().unwrap();
    let named = field.with_dims(["I", "J"]).unwrap();
    assert_eq!(named.managed().address(), field.managed().address());
    assert_eq!(named.field().dims, Some(["I", "J"].map(Dim::from_name).into_iter().collect()));
    assert!(field.with_dims(["I", "I"]).is_err());
}

#[test]
fn bytes_are_read_as_another_type_of_the_same_size_alone() {
    let managed = with_halo(&[10, 9, 4], "numpy").managed().clone();
    let whole = managed.clone().reinterpret(DType::Int64).unwrap();
    assert_eq!((whole.dtype(), whole.address()), (DType::Int64, managed.address()));
    let text = managed.reinterpret(DType::Float32).unwrap_err().to_string();
    assert!(text.contains("expected items of 8 bytes, got float32"), "{text}");
}

//! Memory on another device, or not laid out as the stencil needs or prefers it.

use super::given::*;
use crate::layout::Layout;
use crate::managed::{Checked, Described};
use crate::stencil::{Copied, Original};

fn calls() -> [Option<Argument>; 2] {
    [argument(&[8, 8, 4], None, 1), argument(&[8, 8, 4], None, 1)]
}

/// The memory of an argument as if it were elsewhere: `off` bytes further, on `device`.
fn moved(argument: &mut Option<Argument>, off: usize, device: Device) {
    let managed = &mut argument.as_mut().unwrap().managed;
    let described = Described {
        address: managed.address() + off,
        shape: managed.layout().shape(),
        byte_strides: None,
        dtype: managed.dtype(),
        device,
        readonly: false,
        owner: managed.owner(),
    };
    // SAFETY: nothing here reads or writes the elements.
    *managed = unsafe { Checked::from_described(described) }.unwrap().validate(false).unwrap();
}

fn copies(plan: &CallPlan) -> Vec<Option<&Mismatch>> {
    plan.fields.iter().flatten().map(|field| field.copy.as_ref()).collect()
}

#[test]
fn misaligned_items_are_refused_or_copied_by_a_stencil_that_reads_typed_memory() {
    let mut args = calls();
    moved(&mut args[0], 4, Device::CPU);
    let text = message(resolve(&stencil(), &args, &CallOptions::default()));
    assert!(text.contains("aligned to 8 bytes") && text.contains("on_mismatch="), "{text}");

    let spec = StencilSpec { copy_memory: true, ..stencil() };
    let plan = resolve(&spec, &args, &CallOptions::default()).unwrap();
    assert!(matches!(copies(&plan)[..], [Some(Mismatch::Memory(_)), None]));

    let untyped = StencilSpec { typed: false, ..stencil() };
    let plan = resolve(&untyped, &args, &CallOptions::default()).unwrap();
    assert_eq!(copies(&plan), [None, None]);
}

#[test]
fn memory_of_the_host_is_refused_or_copied_by_a_stencil_of_a_gpu() {
    let gpu = StencilSpec { target: Target::Gpu(None), ..stencil() };
    let text = message(resolve(&gpu, &calls(), &CallOptions::default()));
    assert!(text.contains("'inp': expected memory of a GPU, got cpu"), "{text}");

    let spec = StencilSpec { copy_device: true, ..gpu };
    let plan = resolve(&spec, &calls(), &CallOptions::default()).unwrap();
    assert!(matches!(copies(&plan)[..], [Some(Mismatch::Device(_)), Some(Mismatch::Device(_))]));
}

#[test]
fn memory_of_another_gpu_is_refused_even_if_copies_are_wanted() {
    let gpu = |ordinal| Device::from_dlpack(10, ordinal).unwrap();
    let spec = StencilSpec {
        target: Target::Gpu(Some(1)),
        copy_device: true,
        copy_memory: true,
        ..stencil()
    };
    let mut args = calls();
    for argument in &mut args {
        moved(argument, 0, gpu(1));
    }
    assert_eq!(copies(&resolve(&spec, &args, &CallOptions::default()).unwrap()), [None, None]);
    moved(&mut args[0], 0, gpu(0));
    let text = message(resolve(&spec, &args, &CallOptions::default()));
    assert!(text.contains("expected memory of GPU 1, got rocm:0"), "{text}");
    moved(&mut args[0], 4, gpu(1));
    let text = message(resolve(&spec, &args, &CallOptions::default()));
    assert!(text.contains("aligned") && !text.contains("on_mismatch"), "nobody can: {text}");
}

#[test]
fn memory_of_two_gpus_is_refused_even_if_any_gpu_will_do() {
    let spec = StencilSpec { target: Target::Gpu(None), ..stencil() };
    let mut args = calls();
    for (ordinal, argument) in (0..).zip(&mut args) {
        moved(argument, 0, Device::from_dlpack(10, ordinal).unwrap());
    }
    let text = message(resolve(&spec, &args, &CallOptions::default()));
    assert!(text.contains("'out': expected memory of rocm:0, as 'inp' has"), "{text}");
}

#[test]
fn a_declared_layout_is_a_demand_and_a_fast_one_is_not() {
    let mut spec = stencil();
    spec.fields[1].fast = Some(smallvec![2, 1, 0]);
    let plan = resolve(&spec, &calls(), &CallOptions::default()).unwrap();
    assert_eq!(plan.slow.len(), 1);
    assert!(plan.slow[0].contains("'out'") && plan.slow[0].contains("'gt:cpu_kfirst' is fast"));

    spec.fields[0].ranks = Some(smallvec![2, 1, 0]);
    let text = message(resolve(&spec, &calls(), &CallOptions::default()));
    assert!(text.contains("'inp': expected memory ordered as [2, 1, 0]"), "{text}");

    let untyped = StencilSpec { typed: false, ..spec };
    assert_eq!(resolve(&untyped, &calls(), &CallOptions::default()).unwrap().slow.len(), 2);
}

#[test]
fn a_declared_layout_ranks_the_dimensions_in_their_declared_order() {
    let mut spec = stencil();
    spec.fields[0].ranks = Some(smallvec![2, 1, 0]);
    let args = [argument(&[4, 8, 8], Some("KJI"), 0), argument(&[6, 6, 4], None, 0)];
    let inner = Some(smallvec![1, 1, 0]);
    let options = CallOptions { origins: vec![inner, None], ..CallOptions::default() };
    assert!(resolve(&spec, &args, &options).is_ok(), "C order of KJI is Fortran order of IJK");
}

#[test]
fn a_declared_alignment_is_that_of_the_first_point_of_the_domain() {
    let mut spec = stencil();
    spec.fields[0].alignment = 32;
    let at = |k| {
        let origins = vec![Some(smallvec![1, 1, k]), Some(smallvec![1, 1, k])];
        let domain = Some(smallvec![2, 2, 1]);
        resolve(&spec, &calls(), &CallOptions { origins, domain, ..CallOptions::default() })
    };
    assert!(at(0).is_ok(), "rows of 4 items, the first at the start of a cache line");
    assert!(message(at(1)).contains("on a boundary of 32 bytes, got one 8 bytes behind"));
}

#[test]
fn copied_outputs_overlap_if_their_originals_do() {
    let fields = vec![field("u", "IJK", Access::Write, 0), field("v", "IJK", Access::Write, 0)];
    let spec = StencilSpec { fields, copy_memory: true, ..stencil() };
    let column = |address| {
        let shape = smallvec![2, 2, 2, 8];
        let bytes = Layout::new(shape, smallvec![48, 24, 12, 1], 1).unwrap();
        let original = Box::new(Original { text: "strides".into(), address, bytes });
        let copied = Some(Copied::Original(original));
        argument(&[2, 2, 2], None, 0).map(|one| Argument { copied, ..one })
    };
    let apart = resolve(&spec, &[column(4096), column(8192)], &CallOptions::default()).unwrap();
    assert!(matches!(copies(&apart)[..], [Some(Mismatch::Memory(_)), Some(Mismatch::Memory(_))]));
    let text = message(resolve(&spec, &[column(4096), column(4100)], &CallOptions::default()));
    assert!(text.contains("'u' and 'v'"), "{text}");
}

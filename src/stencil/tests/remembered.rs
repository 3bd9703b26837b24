//! Calls that may and may not get the last plan.

use std::sync::Arc;

use super::given::*;
use crate::stencil::Remembered;

fn resolve_again(
    remembered: &Remembered<()>,
    spec: &StencilSpec,
    arguments: &[Option<Argument>],
    options: &CallOptions,
) -> Result<Arc<CallPlan>> {
    let arguments = arguments.iter().map(Option::as_ref);
    Ok(remembered.resolve(spec, arguments, options, &Declared)?.plan)
}

type Change = fn(&mut [Option<Argument>; 2], &mut CallOptions);

fn calls() -> [Option<Argument>; 2] {
    [argument(&[8, 8, 4], None, 1), argument(&[8, 8, 4], None, 1)]
}

#[test]
fn a_call_that_differs_only_in_addresses_gets_the_last_plan() {
    let (spec, remembered) = (stencil(), Remembered::default());
    let first = resolve_again(&remembered, &spec, &calls(), &CallOptions::default()).unwrap();
    let second = resolve_again(&remembered, &spec, &calls(), &CallOptions::default()).unwrap();
    assert!(Arc::ptr_eq(&first, &second));
}

#[test]
fn a_call_that_differs_in_anything_else_gets_a_new_plan() {
    let changes: [(&str, Change); 6] = [
        ("shape", |args, _| *args = [0, 1].map(|_| argument(&[9, 8, 4], None, 1))),
        ("halo", |args, _| *args = [0, 1].map(|_| argument(&[8, 8, 4], None, 2))),
        ("names", |args, _| args[0] = argument(&[4, 8, 8], Some("KJI"), 0)),
        ("origin", |args, _| args[0].as_mut().unwrap().origin = Some(smallvec![1, 1, 0])),
        ("readonly", |args, _| {
            let managed = &mut args[0].as_mut().unwrap().managed;
            *managed = managed.clone().into_readonly();
        }),
        ("domain", |_, options| options.domain = Some(smallvec![6, 6, 4])),
    ];
    for (what, change) in changes {
        let (spec, remembered) = (stencil(), Remembered::default());
        let first = resolve_again(&remembered, &spec, &calls(), &CallOptions::default()).unwrap();
        let (mut args, mut options) = (calls(), CallOptions::default());
        change(&mut args, &mut options);
        let second = resolve_again(&remembered, &spec, &args, &options).unwrap();
        assert!(!Arc::ptr_eq(&first, &second), "{what}");
        assert_eq!(*second, resolve(&spec, &args, &options).unwrap(), "{what}");
    }
}

#[test]
fn a_wrong_call_is_refused_even_after_a_good_call_of_the_same_shape() {
    let changes: [(&str, Change); 4] = [
        ("dtype", |args, _| {
            let managed = &mut args[0].as_mut().unwrap().managed;
            *managed = managed.clone().reinterpret(DType::Int64).unwrap();
        }),
        ("a read-only output", |args, _| {
            let managed = &mut args[1].as_mut().unwrap().managed;
            *managed = managed.clone().into_readonly();
        }),
        ("overlap", |args, _| args[0] = args[1].clone()),
        ("a missing field", |args, _| args[1] = None),
    ];
    let (spec, remembered) = (stencil(), Remembered::default());
    for (what, change) in changes {
        resolve_again(&remembered, &spec, &calls(), &CallOptions::default()).unwrap();
        let (mut args, mut options) = (calls(), CallOptions::default());
        change(&mut args, &mut options);
        assert!(resolve_again(&remembered, &spec, &args, &options).is_err(), "{what}");
    }
}

#[test]
fn a_slow_call_warns_the_next_time_too() {
    let (mut spec, remembered) = (stencil(), Remembered::default());
    spec.fields[0].fast = Some(smallvec![2, 1, 0]);
    for _ in 0..2 {
        let plan = resolve_again(&remembered, &spec, &calls(), &CallOptions::default()).unwrap();
        assert_eq!(plan.slow.len(), 1);
    }
}

#[test]
fn a_new_distance_from_a_declared_boundary_gets_a_new_plan() {
    let (mut spec, remembered) = (stencil(), Remembered::default());
    let one = FieldSpec { alignment: 512, ..field("inp", "K", Access::Read, 0) };
    spec.fields = vec![one];
    let block = memory(&[4096]);
    let resolve_at = |past: usize| {
        let behind = |start: &i64| block.narrow(0, *start, 8).unwrap().address() % 512 == past;
        let start = (0..64).find(behind).unwrap();
        let managed = block.narrow(0, start, 8).unwrap();
        let inp = argument(&[8], None, 0).map(|inp| Argument { managed, ..inp });
        resolve_again(
            &remembered,
            &spec,
            &[inp.map(|inp| Argument { halo: Some(smallvec![(0, 0)]), ..inp })],
            &CallOptions::default(),
        )
    };
    assert!(resolve_at(0).is_ok());
    assert!(message(resolve_at(64)).contains("one 64 bytes behind"));
}

//! Tests which changes to a call change its fingerprint.

use super::given::*;
use crate::stencil::Fingerprint;

fn given(arguments: &[Option<Argument>]) -> impl Iterator<Item = Option<&Argument>> + Clone {
    arguments.iter().map(Option::as_ref)
}

type Change = fn(&mut [Option<Argument>; 2], &mut CallOptions);

fn calls() -> [Option<Argument>; 2] {
    [argument(&[8, 8, 4], None, 1), argument(&[8, 8, 4], None, 1)]
}

/// True if the usual call still has its fingerprint after a change.
fn fits_after(change: Change) -> bool {
    let (spec, mut options) = (stencil(), CallOptions::default());
    let print = Fingerprint::new(&spec, given(&calls()), &options);
    let mut changed = calls();
    change(&mut changed, &mut options);
    print.fits(&spec, given(&changed), &options)
}

#[test]
fn a_call_that_differs_only_in_addresses_has_the_fingerprint() {
    assert!(fits_after(|_, _| ()));
}

#[test]
fn a_call_that_differs_in_anything_else_does_not_have_the_fingerprint() {
    let changes: [(&str, Change); 9] = [
        ("shape", |args, _| *args = [0, 1].map(|_| argument(&[9, 8, 4], None, 1))),
        ("halo", |args, _| *args = [0, 1].map(|_| argument(&[8, 8, 4], None, 2))),
        ("names", |args, _| args[0] = argument(&[4, 8, 8], Some("KJI"), 0)),
        ("origin", |args, _| args[0].as_mut().unwrap().origin = Some(smallvec![1, 1, 0])),
        ("readonly", |args, _| {
            let managed = &mut args[0].as_mut().unwrap().managed;
            *managed = managed.clone().into_readonly();
        }),
        ("domain", |_, options| options.domain = Some(smallvec![6, 6, 4])),
        ("dtype", |args, _| {
            let managed = &mut args[0].as_mut().unwrap().managed;
            *managed = managed.clone().reinterpret(DType::Int64).unwrap();
        }),
        ("overlap", |args, _| args[0] = args[1].clone()),
        ("a missing field", |args, _| args[1] = None),
    ];
    for (what, change) in changes {
        assert!(!fits_after(change), "{what}");
    }
}

#[test]
fn a_distance_from_a_declared_boundary_belongs_to_the_fingerprint() {
    let mut spec = stencil();
    spec.fields = vec![FieldSpec { alignment: 512, ..field("inp", "K", Access::Read, 0) }];
    let (block, options) = (memory(&[4096]), CallOptions::default());
    let at = |past: usize| {
        let behind = |start: &i64| block.narrow(0, *start, 8).unwrap().address() % 512 == past;
        let start = (0..64).find(behind).unwrap();
        let managed = block.narrow(0, start, 8).unwrap();
        let halo = Some(smallvec![(0, 0)]);
        [argument(&[8], None, 0).map(|inp| Argument { managed, halo, ..inp })]
    };
    let print = Fingerprint::new(&spec, given(&at(0)), &options);
    assert!(print.fits(&spec, given(&at(0)), &options));
    assert!(!print.fits(&spec, given(&at(64)), &options));
    assert!(message(resolve(&spec, &at(64), &options)).contains("one 64 bytes behind"));
}

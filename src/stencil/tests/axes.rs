//! Axes other than I, J and K, stencils that decide their domain, outputs that are made.

use super::given::*;

fn named(names: &[&str]) -> Dims {
    names.iter().map(|name| Dim::from_name(name)).collect()
}

/// A stencil from cells to edges, each with a vertical dimension.
fn to_edges() -> StencilSpec {
    let of = |name: &str, dims: &[&str], access| FieldSpec {
        dims: named(dims),
        touched: touched(access, [(0, 0); 2].into_iter()),
        ..field(name, "", access, 0)
    };
    StencilSpec {
        fields: vec![
            of("cells", &["Cell", "K"], Access::Read),
            of("edges", &["Edge", "K"], Access::Write),
        ],
        axes: named(&["Cell", "Edge", "K"]),
        ..stencil()
    }
}

fn flat(shape: &[i64], names: &[&str]) -> Option<Argument> {
    let halo = Some(smallvec![(0, 0); 2]);
    argument(shape, None, 0).map(|one| Argument { dims: Some(named(names)), halo, ..one })
}

#[test]
fn the_domain_has_an_extent_for_every_axis_of_any_field() {
    let args = [flat(&[5, 30], &["K", "Cell"]), flat(&[40, 5], &["Edge", "K"])];
    let plan = resolve(&to_edges(), &args, &CallOptions::default()).unwrap();
    assert_eq!(plan.domain.as_slice(), [30, 40, 5]);
    assert_eq!(plan.fields[0].as_ref().unwrap().axes.as_slice(), [1, 0]);
}

#[test]
fn a_domain_with_too_few_extents_is_refused() {
    let args = [flat(&[30, 5], &["Cell", "K"]), flat(&[40, 5], &["Edge", "K"])];
    let options = CallOptions { domain: Some(smallvec![30, 5]), ..CallOptions::default() };
    let text = message(resolve(&to_edges(), &args, &options));
    assert!(text.contains("expected 3 numbers for Cell, Edge, K, got [30, 5]"), "{text}");
}

#[test]
fn fields_that_disagree_about_the_domain_are_listed_with_every_axis() {
    let args = [argument(&[26, 16, 4], None, 3), argument(&[26, 16, 4], None, 2)];
    let text = message(resolve(&stencil(), &args, &CallOptions::default()));
    let table: Vec<_> = text.lines().skip(1).collect();
    let expected = [
        "  field  I                J                K",
        "  inp    26, halo (3, 3)  16, halo (3, 3)  4",
        "  out    26, halo (2, 2)  16, halo (2, 2)  4",
    ];
    assert_eq!(table, expected);
}

#[test]
fn fields_need_not_agree_if_the_stencil_decides_its_domain() {
    let mut args = [argument(&[8, 8, 5], None, 1), argument(&[8, 8, 4], None, 0)];
    assert!(resolve(&stencil(), &args, &CallOptions::default()).is_err());
    let spec = StencilSpec { decided_by: DecidedBy::Stencil, ..stencil() };
    let plan = resolve(&spec, &args, &CallOptions::default()).unwrap();
    assert_eq!(origin(&plan, 0), [1, 1, 0]);
    assert_eq!(origin(&plan, 1), [1, 1, 0], "along I and J as large as the other with its halo");
    args[1] = argument(&[6, 6, 4], None, 0);
    assert_eq!(origin(&resolve(&spec, &args, &CallOptions::default()).unwrap(), 1), [0, 0, 0]);
    args[1] = argument(&[7, 6, 4], None, 0);
    assert!(message(resolve(&spec, &args, &CallOptions::default())).contains("got 7 and no halo"));
    args[0].as_mut().unwrap().halo = None;
    assert!(message(resolve(&spec, &args, &CallOptions::default())).contains("pass origin="));
}

#[test]
fn without_origin_and_domain_all_arrays_must_have_one_shape_and_halo() {
    let spec =
        StencilSpec { decided_by: DecidedBy::Arrays { origin: false, domain: false }, ..stencil() };
    for (extent, halo) in [(6, 1), (8, 0), (8, 2)] {
        let args = [argument(&[8, 8, 4], None, 1), argument(&[extent, extent, 4], None, halo)];
        let text = message(resolve(&spec, &args, &CallOptions::default()));
        assert!(text.contains("expected 8 points with a halo of (1, 1) along I"), "{text}");
    }
    let args = [argument(&[8, 8, 4], None, 1), argument(&[8, 8, 4], None, 1)];
    let plan = resolve(&spec, &args, &CallOptions::default()).unwrap();
    assert_eq!((plan.domain.as_slice(), origin(&plan, 1)), (&[6, 6, 4][..], &[1, 1, 0][..]));
}

#[test]
fn with_only_one_of_origin_and_domain_all_arrays_must_have_one_shape() {
    for (origin, domain) in [(true, false), (false, true)] {
        let spec = StencilSpec { decided_by: DecidedBy::Arrays { origin, domain }, ..stencil() };
        let args = [argument(&[8, 8, 4], None, 1), argument(&[6, 6, 4], None, 0)];
        assert!(message(resolve(&spec, &args, &CallOptions::default())).contains("of one shape"));
    }
}

#[test]
fn a_given_origin_or_domain_is_used_if_the_stencil_takes_only_that_one() {
    let args = [argument(&[8, 8, 4], None, 1), argument(&[8, 8, 4], None, 1)];
    let spec =
        StencilSpec { decided_by: DecidedBy::Arrays { origin: false, domain: true }, ..stencil() };
    let mut options = CallOptions { domain: Some(smallvec![3, 2, 1]), ..CallOptions::default() };
    let plan = resolve(&spec, &args, &options).unwrap();
    assert_eq!((plan.domain.as_slice(), origin(&plan, 0)), (&[3, 2, 1][..], &[1, 1, 0][..]));
    options.domain = Some(smallvec![8, 2, 1]);
    assert!(resolve(&spec, &args, &options).is_err(), "more than there is room for");

    let spec =
        StencilSpec { decided_by: DecidedBy::Arrays { origin: true, domain: false }, ..stencil() };
    let origins = vec![Some(smallvec![2, 1, 0]), Some(smallvec![3, 1, 0])];
    let plan = resolve(&spec, &args, &CallOptions { origins, ..CallOptions::default() }).unwrap();
    assert_eq!((plan.domain.as_slice(), origin(&plan, 1)), (&[5, 6, 4][..], &[3, 1, 0][..]));
}

#[test]
fn without_halos_and_options_the_domain_keeps_its_distance_from_the_edge() {
    let spec =
        StencilSpec { decided_by: DecidedBy::Arrays { origin: false, domain: false }, ..stencil() };
    let args = [argument(&[8, 8, 4], None, 0), argument(&[8, 8, 4], None, 0)];
    let plan = resolve(&spec, &args, &CallOptions::default()).unwrap();
    assert_eq!((plan.domain.as_slice(), origin(&plan, 1)), (&[6, 6, 4][..], &[1, 1, 0][..]));
}

#[test]
fn an_output_may_be_missing_in_a_functional_call() {
    let args = [argument(&[26, 16, 4], None, 3), None];
    assert!(message(resolve(&stencil(), &args, &CallOptions::default())).contains("got None"));
    let options = CallOptions { functional: true, ..CallOptions::default() };
    let plan = resolve(&stencil(), &args, &options).unwrap();
    assert_eq!((plan.domain.as_slice(), plan.fields[1].as_ref()), (&[20, 10, 4][..], None));
    assert_eq!(plan.halo.as_slice(), [(3, 3), (3, 3), (0, 0)]);
}

#[test]
fn a_field_that_is_read_and_written_must_not_be_missing() {
    let mut spec = stencil();
    spec.fields[1] = field("out", "IJK", Access::Update, 0);
    let args = [argument(&[26, 16, 4], None, 3), None];
    let options = CallOptions { functional: true, ..CallOptions::default() };
    assert!(resolve(&spec, &args, &options).is_err());
}

#[test]
fn with_an_incomplete_footprint_inputs_must_not_share_memory_with_outputs() {
    let mut spec = stencil();
    let one = argument(&[8, 8, 4], None, 0);
    let origins = vec![Some(smallvec![1, 1, 0]), Some(smallvec![5, 1, 0])];
    let options =
        CallOptions { domain: Some(smallvec![3, 6, 4]), origins, ..CallOptions::default() };
    assert!(resolve(&spec, &[one.clone(), one.clone()], &options).is_ok());
    spec.fields[0].touched.complete = false;
    let text = message(resolve(&spec, &[one.clone(), one], &options));
    assert!(text.contains("'inp' and 'out'"), "{text}");
}

//! Other axes than I, J and K, stencils that decide where they compute, outputs that are to be made.

use super::given::*;

fn named(names: &[&str]) -> Dims {
    names.iter().map(|name| Dim::from_name(name)).collect()
}

/// A stencil from cells to edges, each with a vertical dimension.
fn to_edges() -> StencilSpec {
    let of = |name: &str, dims: &[&str], access| FieldSpec {
        dims: named(dims),
        reach: smallvec![(0, 0); 2],
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
fn the_domain_has_a_number_for_every_axis_that_some_field_has() {
    let args = [flat(&[5, 30], &["K", "Cell"]), flat(&[40, 5], &["Edge", "K"])];
    let plan = resolve(&to_edges(), &args, &Request::default()).unwrap();
    assert_eq!(plan.domain.as_slice(), [30, 40, 5]);
    assert_eq!(plan.fields[0].as_ref().unwrap().axes.as_slice(), [1, 0]);
}

#[test]
fn a_domain_of_another_length_than_there_are_axes_is_refused() {
    let args = [flat(&[30, 5], &["Cell", "K"]), flat(&[40, 5], &["Edge", "K"])];
    let request = Request { domain: Some(smallvec![30, 5]), ..Request::default() };
    let text = message(resolve(&to_edges(), &args, &request));
    assert!(text.contains("expected 3 numbers for Cell, Edge, K, got [30, 5]"), "{text}");
}

#[test]
fn a_disagreement_about_the_domain_shows_what_every_field_says_along_every_axis() {
    let args = [argument(&[26, 16, 4], None, 3), argument(&[26, 16, 4], None, 2)];
    let text = message(resolve(&stencil(), &args, &Request::default()));
    let table: Vec<_> = text.lines().skip(1).collect();
    let expected = [
        "  field  I                J                K",
        "  inp    26, halo (3, 3)  16, halo (3, 3)  4",
        "  out    26, halo (2, 2)  16, halo (2, 2)  4",
    ];
    assert_eq!(table, expected);
}

#[test]
fn fields_of_a_stencil_that_decides_by_itself_need_not_agree() {
    let mut args = [argument(&[8, 8, 5], None, 1), argument(&[8, 8, 4], None, 0)];
    assert!(resolve(&stencil(), &args, &Request::default()).is_err());
    let spec = StencilSpec { decides_domain: true, ..stencil() };
    let plan = resolve(&spec, &args, &Request::default()).unwrap();
    assert_eq!(origin(&plan, 0), [1, 1, 0]);
    assert_eq!(origin(&plan, 1), [1, 1, 0], "along I and J as large as the other with its halo");
    args[1] = argument(&[6, 6, 4], None, 0);
    assert_eq!(origin(&resolve(&spec, &args, &Request::default()).unwrap(), 1), [0, 0, 0]);
    args[1] = argument(&[7, 6, 4], None, 0);
    assert!(message(resolve(&spec, &args, &Request::default())).contains("got 7 and no halo"));
    args[0].as_mut().unwrap().halo = None;
    assert!(message(resolve(&spec, &args, &Request::default())).contains("pass origin="));
}

#[test]
fn a_stencil_that_is_not_told_the_domain_gets_arrays_of_one_shape_and_halo() {
    let untold = StencilSpec { told_origin: false, told_domain: false, ..stencil() };
    for (extent, halo) in [(6, 1), (8, 0), (8, 2)] {
        let args = [argument(&[8, 8, 4], None, 1), argument(&[extent, extent, 4], None, halo)];
        let text = message(resolve(&untold, &args, &Request::default()));
        assert!(text.contains("expected 8 points with a halo of (1, 1) along I"), "{text}");
    }
    let args = [argument(&[8, 8, 4], None, 1), argument(&[8, 8, 4], None, 1)];
    let plan = resolve(&untold, &args, &Request::default()).unwrap();
    assert_eq!((plan.domain.as_slice(), origin(&plan, 1)), (&[6, 6, 4][..], &[1, 1, 0][..]));
}

#[test]
fn a_stencil_that_is_told_only_one_of_origin_and_domain_gets_arrays_of_one_shape_too() {
    for (told_origin, told_domain) in [(true, false), (false, true)] {
        let spec = StencilSpec { told_origin, told_domain, ..stencil() };
        let args = [argument(&[8, 8, 4], None, 1), argument(&[6, 6, 4], None, 0)];
        assert!(message(resolve(&spec, &args, &Request::default())).contains("of one shape"));
    }
}

#[test]
fn what_a_stencil_is_told_counts_where_it_is_told_only_that() {
    let args = [argument(&[8, 8, 4], None, 1), argument(&[8, 8, 4], None, 1)];
    let spec = StencilSpec { told_origin: false, ..stencil() };
    let mut request = Request { domain: Some(smallvec![3, 2, 1]), ..Request::default() };
    let plan = resolve(&spec, &args, &request).unwrap();
    assert_eq!((plan.domain.as_slice(), origin(&plan, 0)), (&[3, 2, 1][..], &[1, 1, 0][..]));
    request.domain = Some(smallvec![8, 2, 1]);
    assert!(resolve(&spec, &args, &request).is_err(), "more than there is room for");

    let spec = StencilSpec { told_domain: false, ..stencil() };
    let origins = vec![Some(smallvec![2, 1, 0]), Some(smallvec![3, 1, 0])];
    let plan = resolve(&spec, &args, &Request { origins, ..Request::default() }).unwrap();
    assert_eq!((plan.domain.as_slice(), origin(&plan, 1)), (&[5, 6, 4][..], &[3, 1, 0][..]));
}

#[test]
fn without_halos_an_untold_stencil_computes_as_far_from_the_edge_as_it_reaches() {
    let untold = StencilSpec { told_origin: false, told_domain: false, ..stencil() };
    let args = [argument(&[8, 8, 4], None, 0), argument(&[8, 8, 4], None, 0)];
    let plan = resolve(&untold, &args, &Request::default()).unwrap();
    assert_eq!((plan.domain.as_slice(), origin(&plan, 1)), (&[6, 6, 4][..], &[1, 1, 0][..]));
}

#[test]
fn an_output_may_be_missing_where_it_is_to_be_made() {
    let args = [argument(&[26, 16, 4], None, 3), None];
    assert!(message(resolve(&stencil(), &args, &Request::default())).contains("got None"));
    let request = Request { functional: true, ..Request::default() };
    let plan = resolve(&stencil(), &args, &request).unwrap();
    assert_eq!((plan.domain.as_slice(), plan.fields[1].as_ref()), (&[20, 10, 4][..], None));
    assert_eq!(plan.halo.as_slice(), [(3, 3), (3, 3), (0, 0)]);
}

#[test]
fn what_is_read_and_written_may_not_be_missing() {
    let mut spec = stencil();
    spec.fields[1].access = Access::Update;
    let args = [argument(&[26, 16, 4], None, 3), None];
    let request = Request { functional: true, ..Request::default() };
    assert!(resolve(&spec, &args, &request).is_err());
}

#[test]
fn where_it_is_not_known_what_is_read_an_input_is_apart_from_every_output() {
    let mut spec = stencil();
    let one = argument(&[8, 8, 4], None, 0);
    let origins = vec![Some(smallvec![1, 1, 0]), Some(smallvec![5, 1, 0])];
    let request = Request { domain: Some(smallvec![3, 6, 4]), origins, ..Request::default() };
    assert!(resolve(&spec, &[one.clone(), one.clone()], &request).is_ok());
    spec.reach_known = false;
    let text = message(resolve(&spec, &[one.clone(), one], &request));
    assert!(text.contains("'inp' and 'out'"), "{text}");
}

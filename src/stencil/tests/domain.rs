//! Order of axes, origin and domain, and refusals.

use super::given::*;

#[test]
fn axes_are_ordered_by_name_and_origins_follow_the_declared_order() {
    let args = [argument(&[4, 16, 26], Some("KJI"), 0), argument(&[26, 16, 4], None, 3)];
    let plan = resolve(&stencil(), &args, &CallOptions::default()).unwrap();
    let axes: Vec<_> = plan.fields.iter().flatten().map(|field| field.axes.to_vec()).collect();
    assert_eq!(axes, [[2, 1, 0], [0, 1, 2]]);
    assert_eq!(origin(&plan, 0), [3, 3, 0], "whole shape: starts at the lower halo");
    assert_eq!(plan.domain.as_slice(), [20, 10, 4]);
}

#[test]
fn an_output_with_the_shape_of_the_domain_starts_at_zero() {
    let args = [argument(&[26, 16, 4], None, 3), argument(&[20, 10, 4], None, 0)];
    let plan = resolve(&stencil(), &args, &CallOptions::default()).unwrap();
    assert_eq!((origin(&plan, 1), plan.domain.as_slice()), (&[0, 0, 0][..], &[20, 10, 4][..]));
}

#[test]
fn a_shape_that_fits_neither_domain_nor_halo_asks_for_origin_and_domain() {
    let args = [argument(&[26, 16, 4], None, 3), argument(&[21, 10, 4], None, 0)];
    let text = message(resolve(&stencil(), &args, &CallOptions::default()));
    assert!(
        text.contains("'out'") && text.contains("got 21") && text.contains("origin="),
        "{text}"
    );
}

#[test]
fn halos_that_disagree_about_the_domain_are_refused() {
    let args = [argument(&[26, 16, 4], None, 3), argument(&[26, 16, 4], None, 2)];
    let text = message(resolve(&stencil(), &args, &CallOptions::default()));
    assert!(text.contains("expected 20 points") && text.contains("got 22"), "{text}");
}

#[test]
fn without_halos_an_origin_must_cover_the_footprint() {
    let args = [argument(&[8, 8, 4], None, 0), argument(&[8, 8, 4], None, 0)];
    let text = message(resolve(&stencil(), &args, &CallOptions::default()));
    assert!(text.contains("points -1 to 8 along I, which 'lap' reads, got 0 to 8"), "{text}");
    let options = CallOptions {
        origins: vec![Some(smallvec![1, 1, 0]), Some(smallvec![1, 1, 0])],
        ..CallOptions::default()
    };
    assert_eq!(resolve(&stencil(), &args, &options).unwrap().domain.as_slice(), [6, 6, 4]);
}

#[test]
fn an_output_too_small_for_origin_and_domain_is_refused() {
    let args = [argument(&[8, 8, 4], None, 0), argument(&[4, 8, 4], None, 0)];
    let origins = vec![Some(smallvec![1, 1, 0]), Some(smallvec![1, 1, 0])];
    let text = message(resolve(
        &stencil(),
        &args,
        &CallOptions { domain: Some(smallvec![6, 6, 4]), origins, ..CallOptions::default() },
    ));
    assert!(
        text.contains("'out'") && text.contains("points 0 to 6") && text.contains("got -1 to 3"),
        "{text}"
    );
}

#[test]
fn an_unmapped_name_is_refused_with_the_line_that_maps_it() {
    let mut inp = argument(&[8, 8, 4], None, 0);
    inp.as_mut().unwrap().dims =
        Some(["lon", "lat", "K"].map(Dim::from_name).into_iter().collect());
    let text = message(resolve(
        &stencil(),
        &[inp, argument(&[8, 8, 4], None, 1)],
        &CallOptions::default(),
    ));
    assert!(text.contains(r#"dims={"lon": "I", "lat": "J"}"#), "{text}");
}

#[test]
fn a_wrong_number_of_dimensions_is_refused() {
    let args = [argument(&[8, 8], None, 0), argument(&[8, 8, 4], None, 1)];
    let text = message(resolve(&stencil(), &args, &CallOptions::default()));
    assert!(text.contains("expected 3 dimensions ('I', 'J', 'K'), got 2"), "{text}");
}

#[test]
fn a_read_only_output_is_refused_and_a_read_only_input_is_not() {
    let mut args = [argument(&[8, 8, 4], None, 1), argument(&[8, 8, 4], None, 1)];
    for (at, refused) in [(0, false), (1, true)] {
        let argument = args[at].as_mut().unwrap();
        argument.managed = argument.managed.clone().into_readonly();
        let result = resolve(&stencil(), &args, &CallOptions::default());
        assert_eq!(result.is_err(), refused, "{result:?}");
    }
}

#[test]
fn two_outputs_in_the_same_memory_are_refused_by_name() {
    let fields = vec![field("u", "IJK", Access::Write, 0), field("v", "IJK", Access::Write, 0)];
    let spec = StencilSpec { fields, ..stencil() };
    let one = argument(&[8, 8, 4], None, 0);
    let text = message(resolve(&spec, &[one.clone(), one], &CallOptions::default()));
    assert!(text.contains("'u' and 'v'") && text.contains("overlap"), "{text}");
}

#[test]
fn a_wrong_dtype_of_the_same_size_is_refused() {
    let mut args = [argument(&[8, 8, 4], None, 1), argument(&[8, 8, 4], None, 1)];
    let inp = args[0].as_mut().unwrap();
    inp.managed = inp.managed.clone().reinterpret(DType::Int64).unwrap();
    let text = message(resolve(&stencil(), &args, &CallOptions::default()));
    assert!(text.contains("expected dtype float64, got int64"), "{text}");
}

#[test]
fn a_lower_dimensional_field_takes_part_along_the_axes_it_has() {
    let mut spec = stencil();
    spec.fields.push(field("level", "K", Access::Read, 0));
    let args =
        [argument(&[26, 16, 4], None, 3), argument(&[26, 16, 4], None, 3), argument(&[4], None, 0)];
    let plan = resolve(&spec, &args, &CallOptions::default()).unwrap();
    assert_eq!((origin(&plan, 2), plan.domain.as_slice()), (&[0][..], &[20, 10, 4][..]));
}

#[test]
fn an_unused_field_may_be_missing() {
    let mut spec = stencil();
    spec.fields.push(field("spare", "IJK", Access::Unused, 0));
    let args = [argument(&[8, 8, 4], None, 1), argument(&[8, 8, 4], None, 1), None];
    assert_eq!(resolve(&spec, &args, &CallOptions::default()).unwrap().fields[2], None);
    assert!(resolve(&spec, &args[..1], &CallOptions::default()).is_err(), "a used one may not");
}

#[test]
fn an_unknown_halo_asks_for_an_origin() {
    let mut args = [argument(&[8, 8, 4], None, 1), argument(&[8, 8, 4], None, 1)];
    args[0].as_mut().unwrap().halo = None;
    assert!(message(resolve(&stencil(), &args, &CallOptions::default())).contains("pass origin="));
}

/// A stencil with one field of two spatial and one data dimension.
fn with_data_dim() -> StencilSpec {
    let field = FieldSpec { data_shape: smallvec![3], ..field("q", "IJ0", Access::Write, 0) };
    StencilSpec { fields: vec![field], ..stencil() }
}

#[test]
fn an_origin_along_a_data_dimension_is_refused() {
    let args = [argument(&[6, 6, 3], None, 0)];
    let options =
        CallOptions { origins: vec![Some(smallvec![0, 0, 1000])], ..CallOptions::default() };
    let text = message(resolve(&with_data_dim(), &args, &options));
    assert!(text.contains("expected 0 along data dimensions"), "{text}");
}

#[test]
fn a_halo_along_a_data_dimension_does_not_shift_the_origin() {
    let mut args = [argument(&[6, 6, 3], None, 1)];
    args[0].as_mut().unwrap().halo = Some(smallvec![(1, 1), (1, 1), (1, 1)]);
    let plan = resolve(&with_data_dim(), &args, &CallOptions::default()).unwrap();
    assert_eq!((origin(&plan, 0), plan.domain.as_slice()), (&[1, 1, 0][..], &[4, 4, 1][..]));
}

#[test]
fn an_interval_that_lies_past_the_column_is_refused() {
    for (width, refused) in [((-5, 0), true), ((0, -5), true), ((-3, 0), false), ((0, -3), false)] {
        let mut spec = stencil();
        spec.fields[0].touched = touched(Access::Read, [(0, 0), (0, 0), width].into_iter());
        let args = [argument(&[8, 8, 4], None, 0), argument(&[8, 8, 4], None, 0)];
        let result = resolve(&spec, &args, &CallOptions::default());
        assert_eq!(result.is_err(), refused, "{width:?}: {result:?}");
    }
}

#[test]
fn a_field_that_is_read_ahead_or_behind_alone_may_begin_or_end_outside_the_domain() {
    for (width, origin, refused) in
        [((-1, 1), -1, false), ((-1, 1), -2, true), ((1, -1), 1, false), ((1, -1), 2, true)]
    {
        let mut spec = stencil();
        spec.fields[0].touched = touched(Access::Read, [width, (0, 0), (0, 0)].into_iter());
        let args = [argument(&[1, 1, 1], None, 0), argument(&[1, 1, 1], None, 0)];
        let origins = vec![Some(smallvec![origin, 0, 0]), None];
        let domain = Some(smallvec![1, 1, 1]);
        let result = resolve(&spec, &args, &CallOptions { origins, domain, ..Default::default() });
        assert_eq!(result.is_err(), refused, "{width:?} {origin}: {result:?}");
    }
}

#[test]
fn an_origin_off_the_halo_asks_for_a_domain() {
    let args = [argument(&[26, 16, 4], None, 3), argument(&[26, 16, 4], None, 3)];
    let origins = vec![Some(smallvec![1, 1, 0]), Some(smallvec![1, 1, 0])];
    let mut options = CallOptions { origins, ..CallOptions::default() };
    let text = message(resolve(&stencil(), &args, &options));
    assert!(text.contains("domain=") && text.contains("[1, 1, 0]"), "{text}");
    options.domain = Some(smallvec![24, 14, 4]);
    assert_eq!(resolve(&stencil(), &args, &options).unwrap().domain.as_slice(), [24, 14, 4]);
}

#[test]
fn a_negative_domain_is_refused_also_beside_an_axis_without_points() {
    let args = [argument(&[8, 8, 4], None, 1), argument(&[8, 8, 4], None, 1)];
    for (domain, refused) in [([0, 6, 4], false), ([0, -1, 4], true), ([6, -1, 0], true)] {
        let options = CallOptions { domain: Some(domain[..].into()), ..CallOptions::default() };
        let result = resolve(&stencil(), &args, &options);
        assert_eq!(result.is_err(), refused, "{domain:?}: {result:?}");
    }
}

#[test]
fn the_origin_of_an_argument_is_used_if_the_call_gives_none() {
    let mut args = [argument(&[8, 8, 4], None, 0), argument(&[8, 8, 4], None, 0)];
    for argument in args.iter_mut().flatten() {
        argument.origin = Some(smallvec![2, 2, 0]);
    }
    let plan = resolve(&stencil(), &args, &CallOptions::default()).unwrap();
    assert_eq!((origin(&plan, 0), plan.domain.as_slice()), (&[2, 2, 0][..], &[5, 5, 4][..]));
}

#[test]
fn an_input_that_reaches_into_the_output_is_refused() {
    let field = argument(&[8, 8, 4], None, 1);
    let text = message(resolve(&stencil(), &[field.clone(), field], &CallOptions::default()));
    assert!(text.contains("'inp' and 'out'") && text.contains("pass a copy"), "{text}");
}

#[test]
fn a_pointwise_stencil_may_write_into_its_input() {
    let mut spec = stencil();
    spec.fields[0] = field("inp", "IJK", Access::Read, 0);
    let one = argument(&[8, 8, 4], None, 1);
    let both = [one.clone(), one];
    assert!(resolve(&spec, &both, &CallOptions::default()).is_ok());
    spec.fields[0].touched.pointwise = false;
    let text = message(resolve(&spec, &both, &CallOptions::default()));
    assert!(text.contains("'inp' and 'out'"), "a loop along K may read a neighbour: {text}");
    spec.fields = vec![field("inp", "IJK", Access::Read, 1), field("out", "IJK", Access::Write, 1)];
    assert!(resolve(&spec, &both, &CallOptions::default()).is_err(), "as far in both");
}

#[test]
fn two_windows_of_one_array_may_be_input_and_output() {
    let field = argument(&[8, 8, 4], None, 0);
    let origins = vec![Some(smallvec![1, 1, 0]), Some(smallvec![5, 1, 0])];
    let options =
        CallOptions { domain: Some(smallvec![3, 6, 4]), origins, ..CallOptions::default() };
    assert!(resolve(&stencil(), &[field.clone(), field], &options).is_ok());
}

//! Calls of made-up stencils: whatever is accepted touches only points inside the arrays, and what is
//! refused breaks a rule of `docs/stencils.md`, held against a model of intervals and addresses.
#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use dlfield::Storage;
use dlfield::fuzzed::{Answer, Boxes, Given, Rule, Uses, Wishes, resolve};
use fuzz::call::{
    DATA, Field, Lying, are_inside, boxes, fields, found_boxes, has_single_points, may_share,
    maybe, placed, three,
};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
struct Input {
    #[arbitrary(with = fields)]
    fields: Vec<Field>,
    #[arbitrary(with = rule)]
    rule: Rule,
    #[arbitrary(with = domain)]
    domain: Option<[i64; 3]>,
    /// True if the footprint is one that was found for the call, and not the declared one.
    #[arbitrary(with = seldom)]
    found: bool,
}

fn seldom(input: &mut Unstructured<'_>) -> Result<bool> {
    input.ratio(1, 5)
}

fn domain(input: &mut Unstructured<'_>) -> Result<Option<[i64; 3]>> {
    maybe(input, (1, 2), |input| three(input, |input| input.int_in_range(-1..=6)))
}

fn rule(input: &mut Unstructured<'_>) -> Result<Rule> {
    Ok(match input.int_in_range(0..=7)? {
        0 => Rule::Arrays { origin: input.arbitrary()?, domain: input.arbitrary()? },
        1 => Rule::Outputs,
        2 => Rule::Stencil,
        _ => Rule::Fields,
    })
}

// ── the comparison ──

fn check_accepted(fields: &[Field], answer: &Answer, boxes_of: impl Fn(&Field, &[i64]) -> Boxes) {
    for (field, found) in fields.iter().zip(&answer.fields) {
        assert_eq!(found.is_some(), field.is_used());
        let Some((axes, origin)) = found else { continue };
        let order = field.order();
        let own: Vec<usize> = axes.iter().map(|&axis| order[axis]).collect();
        assert!(own.iter().copied().eq(0..field.dims.len()), "{field:?}: {axes:?}");
        let touched = boxes_of(field, &answer.domain);
        assert!(
            are_inside(field, origin, &touched),
            "{field:?} touches {touched:?} from {origin:?}"
        );
    }
}

/// The arguments of used fields where the model, or the call, has them.
fn lying<'a>(
    fields: &'a [Field],
    given: &[Given],
    origins: &[Vec<i64>],
    touched: &[Boxes],
) -> Vec<Lying<'a>> {
    let lie = |((field, given), (origin, boxes)): ((&'a Field, &Given), (&Vec<i64>, &Boxes))| {
        let order = field.order();
        let back = (0..order.len()).map(|at| order.iter().position(|&one| one == at));
        let back: Vec<usize> = back.map(|at| at.expect("a permutation")).collect();
        let memory = given.managed.permute(&back).expect("a permutation");
        Lying { field, memory, origin: origin.clone(), boxes: boxes.clone() }
    };
    let all = fields.iter().zip(given).zip(origins.iter().zip(touched));
    all.filter(|((field, _), _)| field.is_used()).map(lie).collect()
}

/// Compares with the rules for stencils of gt4py.cartesian. What is computed for a domain without points
/// is nothing, and which of these calls are legal is left open.
fn check_rule(fields: &[Field], input: &Input, given: &[Given], found: &dlfield::Result<Answer>) {
    let by_axis = placed(fields, input.domain);
    let Some((domain, origins)) = by_axis else {
        assert!(found.is_err(), "{fields:#?}\n{found:?}");
        return;
    };
    if domain.contains(&0)
        && input.domain.is_none_or(|given| given.iter().all(|&points| points >= 0))
    {
        return;
    }
    let by_dims = |(field, origin): (&Field, &[i64; 3])| -> Vec<i64> {
        field.dims.iter().map(|&dim| origin.get(dim).copied().unwrap_or(0)).collect()
    };
    let origins: Vec<Vec<i64>> = fields.iter().zip(&origins).map(by_dims).collect();
    let touched: Vec<Boxes> = fields.iter().map(|field| boxes(field, &domain)).collect();
    let used = || fields.iter().zip(&origins).zip(&touched).filter(|((one, _), _)| one.is_used());
    let legal = domain.iter().all(|&points| points > 0)
        && used().all(|((field, origin), touched)| are_inside(field, origin, touched));
    let all = lying(fields, given, &origins, &touched);
    let expected = legal && may_share(&all);
    match found {
        Ok(answer) => {
            assert!(expected, "{fields:#?}\n{answer:?}");
            assert_eq!(answer.domain[..], domain, "{fields:#?}");
            let of_used = answer
                .fields
                .iter()
                .zip(&origins)
                .filter_map(|(one, at)| Some((one.as_ref()?, at)));
            of_used.for_each(|((_, found), expected)| assert_eq!(&found[..], &expected[..]));
        }
        Err(error) => {
            let odd = legal && has_single_points(&all) && error.to_string().contains("overlap");
            assert!(!expected || odd, "{fields:#?}\n{domain:?} {error}");
        }
    }
}

fuzz_target!(|input: Input| {
    let all = Storage::builder([11, 11, 11, DATA]).zeros::<f64>().expect("small memory");
    let fields = &input.fields;
    let uses: Vec<Uses> = fields.iter().map(Field::uses).collect();
    let given: Vec<Given> = fields.iter().map(|field| field.given(&all)).collect();
    let by_call = |field: &Field| field.origin_by_dims().filter(|_| !field.own_origin);
    let origins = fields.iter().map(by_call).collect();
    let wishes = Wishes { domain: input.domain.map(|domain| domain[..].into()), origins };
    let told = input.found.then(|| found_boxes(fields));
    let answer = resolve(&uses, input.rule, &given, &wishes, told.as_deref());
    if let Ok(answer) = &answer {
        let touched = |field: &Field, domain: &[i64]| match input.found {
            true => boxes(field, &[3, 3, 3]),
            false if domain.contains(&0) => (None, None),
            false => boxes(field, domain),
        };
        check_accepted(fields, answer, touched);
    }
    if input.rule == Rule::Fields && !input.found {
        check_rule(fields, &input, &given, &answer);
    }
});

//! Replays every short sequence of steps by three holders, and compares the lists with a model that
//! only knows which parts share elements.

use super::list::{Borrow, OwnBorrows};
use super::request::BorrowRequest;
use super::tests::{SharedList, field, two_lists};
use crate::managed::Managed;

const HOLDERS: usize = 3;
/// Parts of a field of 4 x 6 elements: two halves whose rows interleave, and a row across both.
const PARTS: usize = 3;

fn parts() -> [Managed; PARTS] {
    let field = field();
    [(1, 0, 3), (1, 3, 3), (0, 2, 1)].map(|(axis, first, n)| field.narrow(axis, first, n).unwrap())
}

fn share_elements(one: usize, other: usize) -> bool {
    one == other || one == 2 || other == 2
}

/// A request for a part.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wanted {
    part: usize,
    writes: bool,
}

const WANTED: [Wanted; 2 * PARTS] = {
    let mut all = [Wanted { part: 0, writes: false }; 2 * PARTS];
    let mut at = 0;
    while at < all.len() {
        all[at] = Wanted { part: at / 2, writes: at % 2 == 1 };
        at += 1;
    }
    all
};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    /// The holder with this number borrows, from the list of a module.
    Borrow(usize, usize, Wanted),
    Release(usize),
    /// The second module uses the list of the first from now on.
    Share,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Held {
    module: usize,
    wanted: Wanted,
    /// Lists that know it, by module.
    known: [bool; 2],
}

/// The borrows that are alive, and what the lists answer to requests.
#[derive(Debug, Clone, Default)]
struct Model {
    held: [Option<Held>; HOLDERS],
    /// In the order in which they were made.
    order: Vec<usize>,
    shared: bool,
}

impl Model {
    fn live(&self) -> impl Iterator<Item = &Held> {
        self.order.iter().filter_map(|&holder| self.held[holder].as_ref())
    }

    fn is_free(&self, list: usize, wanted: Wanted) -> bool {
        let meets = |held: &Held| {
            held.known[list]
                && (held.wanted.writes || wanted.writes)
                && share_elements(held.wanted.part, wanted.part)
        };
        !self.live().any(meets)
    }

    fn grants(&self, module: usize, wanted: Wanted) -> bool {
        self.is_free(module, wanted) && (!self.shared || self.is_free(0, wanted))
    }

    fn make(&mut self, step: Step) {
        match step {
            Step::Borrow(holder, module, wanted) => {
                let list = if self.shared { 0 } else { module };
                let known = [list == 0, list == 1];
                self.held[holder] = Some(Held { module, wanted, known });
                self.order.push(holder);
            }
            Step::Release(holder) => {
                self.held[holder] = None;
                self.order.retain(|&one| one != holder);
            }
            Step::Share => {
                self.shared = true;
                for holder in self.order.clone() {
                    let free = self.held[holder]
                        .is_some_and(|one| one.module == 1 && self.is_free(0, one.wanted));
                    if let (true, Some(held)) = (free, &mut self.held[holder]) {
                        held.known[0] = true;
                    }
                }
            }
        }
    }

    /// True if two borrows that conflict are alive together only where the first list lacks one of
    /// them, which the second module made before the lists were joined.
    fn excludes_writers(&self) -> bool {
        let live: Vec<&Held> = self.live().collect();
        live.iter().enumerate().all(|(at, one)| {
            live[..at].iter().all(|other| {
                let meet = (one.wanted.writes || other.wanted.writes)
                    && share_elements(one.wanted.part, other.wanted.part);
                !meet || one.known[0] != other.known[0]
            })
        })
    }

    /// The steps that can come next. Holders are alike: the first free one borrows.
    fn next(&self, modules: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        if let Some(free) = self.held.iter().position(Option::is_none) {
            let of = |module| WANTED.map(|wanted| (module, wanted));
            let all = (0..modules).flat_map(of);
            let granted = all.filter(|&(module, wanted)| self.grants(module, wanted));
            steps.extend(granted.map(|(module, wanted)| Step::Borrow(free, module, wanted)));
        }
        let held = (0..HOLDERS).filter(|&holder| self.held[holder].is_some());
        steps.extend(held.map(Step::Release));
        steps.extend((modules > 1 && !self.shared).then_some(Step::Share));
        steps
    }
}

/// Replays the steps. Before each one, and at the end, requests every part and compares the answer
/// with the model.
fn replay(
    parts: &[Managed; PARTS],
    lists: [&'static OwnBorrows; 2],
    modules: usize,
    steps: &[Step],
) {
    let mut held: [Option<Borrow>; HOLDERS] = Default::default();
    let mut model = Model::default();
    let ask = |module: usize, wanted: Wanted| {
        lists[module].borrow(BorrowRequest::new(&parts[wanted.part], wanted.writes))
    };
    let compare = |model: &Model| {
        for (module, wanted) in (0..modules).flat_map(|one| WANTED.map(|wanted| (one, wanted))) {
            let (got, expected) = (ask(module, wanted).is_ok(), model.grants(module, wanted));
            assert_eq!(got, expected, "{wanted:?} of module {module}, {model:?}, {steps:?}");
        }
    };
    for step in steps {
        compare(&model);
        match *step {
            Step::Borrow(holder, module, wanted) => held[holder] = ask(module, wanted).ok(),
            Step::Release(holder) => held[holder] = None,
            Step::Share => lists[1].share(Box::new(SharedList(lists[0]))),
        }
        model.make(*step);
        assert!(model.excludes_writers(), "{model:?}, {steps:?}");
    }
    compare(&model);
}

/// Replays every sequence of `length` steps, and returns how many there are.
fn explore(modules: usize, length: usize) -> usize {
    fn further(
        model: &Model,
        modules: usize,
        left: usize,
        made: &mut Vec<Step>,
        f: &mut impl FnMut(&[Step]),
    ) {
        if left == 0 {
            return f(made);
        }
        for step in model.next(modules) {
            let mut next = model.clone();
            next.make(step);
            made.push(step);
            further(&next, modules, left - 1, made, f);
            made.pop();
        }
    }
    let (parts, mut lists, mut number) = (parts(), two_lists(), 0);
    further(&Model::default(), modules, length, &mut Vec::new(), &mut |steps| {
        replay(&parts, lists.into(), modules, steps);
        if steps.contains(&Step::Share) {
            lists = two_lists(); // a list is shared for good
        }
        number += 1;
    });
    number
}

/// The number of steps; `DLFIELD_TEST_STEPS` sets another one.
fn steps(usual: usize) -> usize {
    std::env::var("DLFIELD_TEST_STEPS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[test]
fn every_sequence_of_borrows_is_granted_as_by_a_model() {
    assert!(explore(1, steps(6)) > 1_000);
}

#[test]
fn two_modules_that_join_their_lists_grant_what_a_model_grants() {
    assert!(explore(2, steps(4)) > 1_000);
}

//! The road: a file uses only what stands above it in the `mod` list of `src/lib.rs`, and inside a
//! folder only what stands above it in the list of its `mod.rs`.
//!
//! Three kinds of path count: those of `use`, and those anywhere in the code that begin with
//! `crate`, `super` or `self`. A name that a module re-exports counts as a use of the module it
//! comes from.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "road/border.rs"]
mod border;
#[path = "road/reader.rs"]
mod reader;
#[path = "road/tree.rs"]
mod tree;

use std::fs;
use std::path::Path;

use reader::Module;
use tree::Tree;

fn read(folder: &Path, prefix: &str, into: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_string_lossy());
        if path.is_dir() {
            read(&path, &format!("{name}/"), into);
        } else if name.ends_with(".rs") {
            into.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
}

fn sources() -> Vec<(String, String)> {
    let (folder, mut files) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), Vec::new());
    read(&folder, "", &mut files);
    files
}

fn this_crate() -> Tree {
    let files = sources();
    let borrowed = files.iter().map(|(file, text)| (&**file, &**text));
    Tree::new(&borrowed.collect::<Vec<_>>())
}

fn assert_none<T: std::fmt::Debug>(found: &[T]) {
    assert!(found.is_empty(), "{found:#?}");
}

/// The files outside `homes` that name `word`.
fn strays(word: &str, homes: &[&str]) -> Vec<String> {
    let at_home = |file: &str| homes.iter().any(|home| file.starts_with(home));
    let modules = this_crate().0.into_values();
    let strays = modules.filter(|module| module.names(word) && !at_home(&module.file));
    strays.map(|module| module.file).collect()
}

#[test]
fn every_file_uses_only_what_stands_above_it() {
    assert_none(&this_crate().violations());
}

#[test]
fn every_file_is_in_a_mod_list() {
    assert_none(&this_crate().unreachable());
}

#[test]
fn no_file_or_folder_is_named_utils_or_common() {
    let vague = |part: &str| matches!(part.trim_end_matches(".rs"), "utils" | "common");
    let files = sources().into_iter().map(|(file, _)| file);
    let found = files.filter(|file| file.split('/').any(vague));
    assert_none(&found.collect::<Vec<_>>());
}

#[test]
fn no_file_is_longer_than_400_lines() {
    let lengths = sources().into_iter().map(|(file, text)| (file, text.lines().count()));
    let long = lengths.filter(|(_, lines)| *lines > 400);
    assert_none(&long.collect::<Vec<_>>());
}

#[test]
fn dlpark_is_named_only_in_managed_and_the_dlpack_door() {
    assert_none(&strays("dlpark", &["managed", "protocol/dlpack", "lib.rs"])); // which shows it to users
}

#[test]
fn cudarc_is_named_only_in_cuda() {
    assert_none(&strays("cudarc", &["cuda"]));
}

#[test]
fn threads_attach_and_are_taken_to_be_attached_in_interpreter_alone() {
    for word in ["attach", "try_attach", "attach_unchecked", "assume_attached"] {
        assert_none(&strays(word, &["interpreter"]));
    }
    let of_threads = ["PyGILState_", "PyEval_", "PyThreadState_"];
    let names_one = |module: &Module| {
        let mut texts = module.tokens.iter().map(|token| token.text.as_str());
        texts.any(|text| of_threads.iter().any(|prefix| text.starts_with(prefix)))
    };
    let modules = this_crate().0.into_values();
    let strays = modules.filter(|one| names_one(one) && !one.file.starts_with("interpreter"));
    assert_none(&strays.map(|module| module.file).collect::<Vec<_>>());
}

#[test]
fn an_object_of_python_is_in_an_owner_as_what_is_dropped_attached() {
    // The functions in `Hooks` belong to a call; what outlives the call is `Acquired`.
    let exempt = |module: &Module| module.file == "protocol/hooks.rs";
    // An `Arc` in these rooms is shared by objects of Python, which Python frees attached.
    let skin = ["python", "compute", "call"];
    let at_home = |module: &Module| skin.iter().any(|room| module.file.starts_with(room));
    let shares = |module: &Module| module.names("Arc") && !at_home(module);
    let makes_owners =
        |module: &Module| shares(module) || OWNERS.iter().any(|word| module.names(word));
    let modules = this_crate().0.into_values();
    let owners: Vec<_> = modules.filter(|one| makes_owners(one) && !exempt(one)).collect();
    assert!(owners.iter().any(|module| module.names("DropAttached")), "none is found");
    let bare = owners.iter().filter(|module| bare_objects(module) > 0);
    assert_none(&bare.map(|module| &module.file).collect::<Vec<_>>());
}

/// Names of what keeps a value that any thread may drop.
const OWNERS: [&str; 5] = ["Owner", "along_with", "FieldMut", "companion", "Exported"];

/// How many objects a file makes independent of a call anywhere but in `DropAttached::new(…)`.
fn bare_objects(module: &Module) -> usize {
    let texts: Vec<_> = module.tokens.iter().map(|token| token.text.as_str()).collect();
    let (mut depth, mut wrapped_at, mut found) = (0_usize, None, 0);
    for (at, text) in texts.iter().enumerate() {
        match *text {
            "(" => {
                let wraps = texts[..at].ends_with(&["DropAttached", "::", "new"]);
                wrapped_at = wrapped_at.or(wraps.then_some(depth));
                depth += 1;
            }
            ")" => {
                depth = depth.saturating_sub(1);
                wrapped_at = wrapped_at.filter(|&outside| depth > outside);
            }
            "unbind" | "clone_ref" if wrapped_at.is_none() => found += 1,
            _ => {}
        }
    }
    found
}

#[test]
fn every_word_forbids_unsafe_code() {
    let tree = this_crate();
    for word in ["dtype", "device", "layout", "field", "preset"] {
        let module = &tree.0[&vec![word.to_owned()]];
        assert!(forbids_unsafe(module), "{} allows unsafe code", module.file);
    }
}

/// The functions that Python calls and that run no Python code, so that they need not begin a call.
const QUIET: [&str; 20] = [
    "call/bound_stencil.rs argument_names",
    "call/running.rs is_bound_call",
    "compute/operators.rs __matmul__",
    "compute/operators.rs __rmatmul__",
    "compute/operators.rs __imatmul__",
    "python/batch.rs run",
    "python/device_array.rs shape",
    "python/settings.rs pool_bytes",
    "python/settings.rs free_pool",
    "python/storage/attributes.rs sync_state_class",
    "python/storage/attributes.rs __dlpack_c_exchange_api__",
    "python/storage/attributes.rs shape",
    "python/storage/attributes.rs set_dims",
    "python/storage/attributes.rs __delitem__",
    "python/storage/doors.rs base",
    "python/storage/exchange.rs _finish",
    "python/storage/exchange.rs device_to_host",
    "python/storage/exchange.rs host_to_device",
    "python/storage/exchange.rs synchronize",
    "xla/handler.rs xla_handler",
];

#[test]
fn every_function_that_python_calls_begins_a_call_or_runs_no_python_code() {
    let (entries, mut outside) = border::outside(&this_crate());
    assert!(entries > 150, "{entries} are found"); // a macro's count once
    let stale = QUIET.iter().filter(|quiet| !outside.iter().any(|entry| entry == *quiet));
    assert_none(&stale.collect::<Vec<_>>());
    outside.retain(|entry| !QUIET.contains(&entry.as_str()));
    assert!(outside.is_empty(), "needs Inside::enter, or a line in QUIET: {outside:#?}");
}

/// Whether the file says `#![forbid(unsafe_code)]`.
fn forbids_unsafe(module: &Module) -> bool {
    let texts = module.tokens.iter().map(|token| token.text.as_str());
    let texts: Vec<_> = texts.collect();
    let wanted = ["#", "!", "[", "forbid", "(", "unsafe_code"];
    texts.windows(wanted.len()).any(|some| some == wanted)
}

// ── the checker itself, on small crates ──

/// Returns the functions in `source` that Python calls and that begin no call.
fn outside_in(source: &str) -> Vec<String> {
    border::outside(&Tree::new(&[("lib.rs", "mod a;"), ("a.rs", source)])).1
}

#[test]
fn a_function_that_begins_no_call_is_found() {
    assert_eq!(outside_in("#[pyfunction] fn f(x: &Bound<'_, PyAny>) { g(x) }"), ["a.rs f"]);
    let method = "#[pymethods] impl X { fn f(&self, py: Python<'_>) { self.g(py) } }";
    let begins = "impl Y { fn g(&self, py: Python<'_>) { Inside::enter(py); } }";
    let does_not = "impl Z { fn g(&self, py: Python<'_>) {} }";
    assert_eq!(outside_in(&format!("{method} {begins} {does_not}")), ["a.rs f"]);
}

#[test]
fn a_function_that_begins_a_call_or_has_no_interpreter_is_allowed() {
    let begins = "fn g(x: &Bound<'_, PyAny>) { let _inside = Inside::enter(x.py()); }";
    let entry = "#[pyfunction] fn f(x: &Bound<'_, PyAny>) { g(x) }";
    assert_none(&outside_in(&format!("{begins} {entry}")));
    assert_none(&outside_in("#[pymethods] impl X { fn f(&self) -> usize { self.0 } }"));
    assert_none(&outside_in("impl X { fn f(&self, py: Python<'_>) {} }"));
}

/// What is found in `source` as module `b` of a crate whose road is a, b, c.
fn found_in_b(source: &str) -> usize {
    let root = "mod a; pub(crate) mod b; #[cfg(feature = \"c\")] mod c; pub use c::Late;";
    Tree::new(&[("lib.rs", root), ("a.rs", ""), ("b.rs", source), ("c.rs", "")]).violations().len()
}

/// What is found in `source` as file b of a folder whose list is a, b, c.
fn found_in_folder(source: &str) -> usize {
    let folder = "mod a; mod b; mod c; pub use a::A; use c::{C as Renamed}; use b::B;";
    let files = [("x/mod.rs", folder), ("x/a.rs", ""), ("x/b.rs", source), ("x/c.rs", "")];
    Tree::new(&[&[("lib.rs", "mod x;")], &files[..]].concat()).violations().len()
}

/// How many bare objects a file with this source has.
fn bare_in(source: &str) -> usize {
    bare_objects(&Tree::new(&[("lib.rs", "mod a;"), ("a.rs", source)]).0[&vec!["a".to_owned()]])
}

#[test]
fn an_object_that_nothing_drops_attached_is_found() {
    assert_eq!(bare_in("fn f() { Owner::new(object.clone().unbind()) }"), 1);
    assert_eq!(bare_in("fn f() { (DropAttached::new(a(b)), object.unbind()) }"), 1);
    assert_eq!(bare_in("fn f() { DropAttached::of(object.clone_ref(py)) }"), 1);
}

#[test]
fn an_object_that_is_dropped_attached_is_allowed() {
    assert_eq!(bare_in("fn f() { Owner::new(DropAttached::new((a.unbind(), b(c).unbind()))) }"), 0);
}

#[test]
fn a_use_from_above_or_from_outside_is_allowed() {
    assert_eq!(
        found_in_b("use crate::a::A; use std::fmt; use ::c::C; use c::C; use self::d::D;"),
        0
    );
}

#[test]
fn a_use_from_below_is_found() {
    assert_eq!(found_in_b("use crate::c::C;"), 1);
    assert_eq!(found_in_b("pub(crate) use super::c;"), 1);
}

#[test]
fn a_grouped_use_from_below_is_found() {
    assert_eq!(found_in_b("use crate::{a::{self, A as Z}, c::{C, D}};"), 2);
    assert_eq!(found_in_b("use {std::fmt, crate::c::*};"), 1);
}

#[test]
fn a_path_from_below_inside_an_expression_is_found() {
    assert_eq!(
        found_in_b("fn f(x: &crate::c::C<'_>) -> u8 { crate::a::g(x) + super::c::g('{') }"),
        2
    );
}

#[test]
fn comments_and_literals_are_not_uses() {
    let source = r##"// crate::c::C
        //! [`crate::c::C`]
        /* /* crate::c */ crate::c::C */
        const S: &str = "\" crate::c::C"; const R: &str = r#"" crate::c::C"#; const Q: char = '"';
    "##;
    assert_eq!(found_in_b(source), 0);
}

#[test]
fn what_follows_a_literal_is_still_read() {
    assert_eq!(
        found_in_b(r###"const R: &str = r##""# "##; const C: char = '\''; use crate::c::C;"###),
        1
    );
    assert_eq!(found_in_b("fn f<'a>(s: &'a str) -> &'a str { s } use crate::c::C;"), 1);
}

#[test]
fn a_test_module_obeys_the_road_too() {
    assert_eq!(found_in_b("#[cfg(test)] mod tests { use super::*; use super::super::a::A; }"), 0);
    assert_eq!(found_in_b("#[cfg(test)] mod tests { use crate::c::C; }"), 1);
    assert_eq!(found_in_b("mod tests { use super::super::c::C; }"), 1);
}

#[test]
fn a_re_export_does_not_hide_what_stands_below() {
    assert_eq!(found_in_b("use crate::Late;"), 1);
    assert_eq!(found_in_folder("use super::Renamed;"), 1);
    assert_eq!(found_in_folder("use super::{A, B};"), 0);
}

#[test]
fn a_sibling_below_in_a_folder_is_found() {
    assert_eq!(found_in_folder("use super::a::A; use crate::x::a;"), 0);
    assert_eq!(found_in_folder("use super::c::C; use crate::x::c;"), 2);
}

#[test]
fn a_star_that_takes_what_stands_below_is_found() {
    assert_eq!(found_in_folder("use super::*;"), 1);
    assert_eq!(found_in_b("use crate::*;"), 1);
    assert_eq!(found_in_b("use crate::a::*;"), 0);
}

#[test]
fn a_folder_may_use_all_that_lies_in_it() {
    let files =
        [("lib.rs", "mod x; use x::f;"), ("x/mod.rs", "mod a; mod b; use b::B; use self::a;")];
    assert_none(&Tree::new(&files).violations());
}

#[test]
fn a_line_number_leads_to_the_use() {
    let files = [("lib.rs", "mod b; mod c;"), ("b.rs", "/*\n*/ \"\n\";\nuse crate::c::C;")];
    let expected = "b.rs:4 uses crate::c::C, which does not stand above it";
    assert_eq!(Tree::new(&files).violations(), [expected]);
}

#[test]
fn a_file_that_no_list_names_is_found() {
    let files = [
        ("lib.rs", "mod x; // mod y;"),
        ("x/mod.rs", "mod a;"),
        ("x/a.rs", ""),
        ("x/b.rs", ""),
        ("y.rs", ""),
    ];
    assert_eq!(Tree::new(&files).unreachable(), ["x/b.rs", "y.rs"]);
}

//! The border to Python: finds the functions that Python calls with the interpreter and that begin no
//! call (`Inside::enter`), neither themselves nor in a function that they call.
//!
//! Calls are followed by name. A method that several types have counts if it begins a call in all.

use std::collections::HashMap;

use crate::reader::Module;
use crate::tree::Tree;

#[derive(Debug)]
struct Function<'a> {
    file: &'a str,
    class: Option<&'a str>,
    name: &'a str,
    signature: Vec<&'a str>,
    body: Vec<&'a str>,
    is_entry: bool,
    /// The imports of the file: each name with the module that it comes from.
    imports: Vec<(&'a str, &'a str)>,
}

/// How many functions Python can call, and those that have the interpreter and begin no call.
pub(crate) fn outside(tree: &Tree) -> (usize, Vec<String>) {
    let all: Vec<_> = tree.0.values().flat_map(functions).collect();
    let begins = beginning(&all);
    let attached = |one: &Function<'_>| {
        let words = ["Python", "Bound", "Borrowed", "Py", "PyRef"];
        one.signature.iter().any(|word| words.contains(word))
    };
    let entries = all.iter().zip(begins).filter(|(one, _)| one.is_entry);
    let quiet = entries.clone().filter(|(one, begins)| !begins && attached(one));
    (entries.count(), quiet.map(|(one, _)| format!("{} {}", one.file, one.name)).collect())
}

/// For each function whether it begins a call.
fn beginning(all: &[Function<'_>]) -> Vec<bool> {
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, function) in all.iter().enumerate() {
        by_name.entry(function.name).or_default().push(at);
    }
    let called = |by: &Function<'_>| -> Vec<Vec<usize>> {
        let words = 1..by.body.len().saturating_sub(1);
        words.map(|at| called(all, &by_name, by, at)).filter(|some| !some.is_empty()).collect()
    };
    let called: Vec<_> = all.iter().map(called).collect();
    let enters = |one: &Function<'_>| one.body.windows(3).any(|some| some == ENTER);
    let mut begins: Vec<_> = all.iter().map(enters).collect();
    loop {
        let further = |at: &usize| {
            !begins[*at] && called[*at].iter().any(|some| some.iter().all(|one| begins[*one]))
        };
        let found: Vec<_> = (0..all.len()).filter(further).collect();
        if found.is_empty() {
            return begins;
        }
        found.into_iter().for_each(|at| begins[at] = true);
    }
}

const ENTER: [&str; 3] = ["Inside", "::", "enter"];

/// The functions that the word at `at` may call or hand over.
fn called(
    all: &[Function<'_>],
    by_name: &HashMap<&str, Vec<usize>>,
    by: &Function<'_>,
    at: usize,
) -> Vec<usize> {
    let (before, word, after) = (by.body[at - 1], by.body[at], by.body[at + 1]);
    let Some(named) = by_name.get(word) else { return Vec::new() };
    let those = |test: &dyn Fn(&Function<'_>) -> bool| -> Vec<usize> {
        named.iter().copied().filter(|one| test(&all[*one])).collect()
    };
    let or = |some: Vec<_>, others: Vec<_>| if some.is_empty() { others } else { some };
    let free = |one: &Function<'_>| one.class.is_none();
    let here = |one: &Function<'_>| one.file == by.file;
    let of = |class: Option<&str>| those(&|one| one.class.is_some() && one.class == class);
    let in_file = |name: &str| those(&|one| free(one) && one.file.ends_with(name));
    let owner = at.checked_sub(2).map_or("", |at| by.body[at]);
    match before {
        "::" if owner == "Self" => of(by.class),
        "::" => or(of(Some(owner)), in_file(&format!("/{owner}.rs"))),
        "." if after != "(" => Vec::new(),
        "." if owner == "self" => or(of(by.class), those(&|one| !free(one))),
        "." if owner == "}" => of(literal(&by.body[..at - 1])),
        "." => or(those(&|one| !free(one) && here(one)), those(&|one| !free(one))),
        _ if ["(", ")", ","].contains(&after) => {
            let home = by.imports.iter().find(|(name, _)| *name == word);
            let imported = home.map_or_else(Vec::new, |(_, home)| in_file(&format!("/{home}.rs")));
            or(those(&|one| free(one) && here(one)), or(imported, those(&free)))
        }
        _ => Vec::new(),
    }
}

/// The type of the value in braces that ends `texts`.
fn literal<'a>(texts: &[&'a str]) -> Option<&'a str> {
    let (mut depth, mut before) = (0_usize, texts.iter().rev());
    before.find(|text| {
        match **text {
            "}" => depth += 1,
            "{" => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    before.next().copied()
}

fn functions(module: &Module) -> Vec<Function<'_>> {
    let texts: Vec<_> = module.tokens.iter().map(|token| token.text.as_str()).collect();
    let (mut found, mut class, mut class_end) = (Vec::new(), None, 0);
    let (mut methods_end, mut marked) = (0, false);
    let imports = module.uses.iter().filter(|found| found.import).filter_map(|found| {
        match found.path.as_slice() {
            [.., home, _] => Some((found.name.as_str(), home.as_str())),
            _ => None,
        }
    });
    let imports: Vec<_> = imports.collect();
    for at in 0..texts.len() {
        let rest = &texts[at..];
        if rest.starts_with(&["#", "[", "pymethods", "]"]) {
            methods_end = end(&texts, at);
        }
        marked |= rest.starts_with(&["#", "[", "pyfunction"]);
        if rest[0] == "impl" && at >= class_end {
            (class, class_end) = (class_of(rest), end(&texts, at));
        }
        let Some(name) = rest.get(1).filter(|name| rest[0] == "fn" && is_name(name)) else {
            continue;
        };
        if let Some(length) = signature(rest) {
            found.push(Function {
                file: &module.file,
                class: class.filter(|_| at < class_end),
                name,
                signature: rest[..length].to_vec(),
                body: texts[at + length..end(&texts, at)].to_vec(),
                is_entry: marked || at < methods_end,
                imports: imports.clone(),
            });
        }
        marked = false;
    }
    found
}

/// The length of a signature that a body follows.
fn signature(texts: &[&str]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, text) in texts.iter().enumerate() {
        match *text {
            "[" => depth += 1,
            "]" => depth = depth.saturating_sub(1),
            "{" if depth == 0 => return Some(at),
            ";" if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_lowercase() || first == '_')
}

/// The type whose methods follow.
fn class_of<'a>(texts: &[&'a str]) -> Option<&'a str> {
    let head: Vec<_> = texts.iter().take_while(|text| **text != "{").copied().collect();
    let own = head.iter().position(|text| *text == "for").map_or(&head[..], |at| &head[at..]);
    own.iter().find(|text| text.starts_with(char::is_uppercase)).copied()
}

/// The end of the next block in braces.
fn end(texts: &[&str], from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, text) in texts.iter().enumerate().skip(from) {
        match *text {
            "{" => depth += 1,
            "}" if depth <= 1 => return at + 1,
            "}" => depth -= 1,
            _ => {}
        }
    }
    texts.len()
}

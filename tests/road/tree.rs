//! Judges whether every path that a module names stands above it.

use std::collections::BTreeMap;

use crate::reader::{Module, ModulePath, Use, module_path};

/// The modules of a crate by their path.
#[derive(Debug)]
pub(crate) struct Tree(pub(crate) BTreeMap<ModulePath, Module>);

impl Tree {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let module = |(file, source): &(&str, &str)| (module_path(file), Module::new(file, source));
        Self(files.iter().map(module).collect())
    }

    fn children(&self, module: &[String]) -> &[String] {
        self.0.get(module).map_or(&[], |module| &module.children)
    }

    /// The module that `path`, written inside module `inside`, belongs to. A name that a module
    /// imports belongs to where it comes from, over at most `hops` imports.
    fn resolve(&self, inside: &[String], path: &[String], hops: usize) -> ModulePath {
        self.walk(inside, path, hops).0
    }

    /// As `resolve`, and whether the path names a module and nothing in it.
    fn walk(&self, inside: &[String], path: &[String], hops: usize) -> (ModulePath, bool) {
        let mut at = inside.to_vec();
        for word in path {
            match word.as_str() {
                "crate" => at.clear(),
                "super" => drop(at.pop()),
                "self" => {}
                _ if self.children(&at).contains(word) => at.push(word.clone()),
                _ => match self.import(&at, word).filter(|_| hops > 0) {
                    Some(import) => at = self.resolve(&at, &import.path, hops - 1),
                    None => return (at, false),
                },
            }
        }
        (at, true)
    }

    fn import(&self, module: &[String], name: &str) -> Option<&Use> {
        let uses = &self.0.get(module)?.uses;
        uses.iter().find(|found| found.import && found.name == name)
    }

    /// A module may use itself, what lies in it, and what stands above it. What a folder defines
    /// itself stands below all that lies in it; its name alone, as in `pub(in ...)`, is free.
    fn may_use(&self, user: &[String], used: &[String], name_alone: bool) -> bool {
        let shared = user.iter().zip(used).take_while(|(a, b)| a == b).count();
        if shared == user.len() {
            return true;
        }
        if shared == used.len() {
            return name_alone;
        }
        let list = self.children(&user[..shared]);
        let place = |name: &String| list.iter().position(|entry| entry == name);
        matches!((place(&used[shared]), place(&user[shared])), (Some(a), Some(b)) if a < b)
    }

    /// `*` of a folder brings also what stands below the user, if anything does.
    fn takes_all(&self, user: &[String], used: &[String], found: &Use) -> bool {
        let inside = used.len() < user.len() && user.starts_with(used);
        found.name == "*" && inside && self.children(used).last() != user.get(used.len())
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (user, module) in &self.0 {
            for found in &module.uses {
                let (used, name_alone) = self.walk(&found.inside, &found.path, 8);
                let name_alone = name_alone && found.name != "*";
                if !self.may_use(user, &used, name_alone) || self.takes_all(user, &used, found) {
                    let (file, line, path) = (&module.file, found.line, found.path.join("::"));
                    all.push(format!("{file}:{line} uses {path}, which does not stand above it"));
                }
            }
        }
        all
    }

    pub(crate) fn unreachable(&self) -> Vec<&str> {
        let listed = |path: &ModulePath| {
            (0..path.len()).all(|depth| self.children(&path[..depth]).contains(&path[depth]))
        };
        let missing = self.0.iter().filter(|(path, _)| !listed(path));
        missing.map(|(_, module)| module.file.as_str()).collect()
    }
}

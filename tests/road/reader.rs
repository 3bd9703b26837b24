//! Reads a source file as tokens, without comments and literals, and finds the paths it names.

/// A module's path from the crate root, which is the empty path.
pub(crate) type ModulePath = Vec<String>;

/// Paths, each with the name that it brings into scope.
type Paths = Vec<(ModulePath, String)>;

#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// One path that a file names.
#[derive(Debug)]
pub(crate) struct Use {
    pub(crate) line: usize,
    /// The module it is written in, inline modules included.
    pub(crate) inside: ModulePath,
    pub(crate) path: Vec<String>,
    /// The name it brings into scope.
    pub(crate) name: String,
    /// Whether it is a `use` of the file's own module, which others can see.
    pub(crate) import: bool,
}

#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) file: String,
    pub(crate) tokens: Vec<Token>,
    pub(crate) children: Vec<String>,
    pub(crate) uses: Vec<Use>,
}

/// The end of the comment or literal that begins at `start`, or `None` where neither does.
fn skipped(source: &str, start: usize) -> Option<usize> {
    let rest = &source[start..];
    let length = if rest.starts_with("//") {
        rest.find('\n').unwrap_or(rest.len())
    } else if rest.starts_with("/*") {
        block_comment(rest)
    } else if let Some(length) = raw_string(rest) {
        length
    } else if rest.starts_with('"') {
        quoted(rest, '"')
    } else if is_character(rest) {
        quoted(rest, '\'')
    } else {
        return None;
    };
    Some(start + length)
}

/// A character, where a lifetime could stand too.
fn is_character(text: &str) -> bool {
    text.starts_with("'\\") || (text.starts_with('\'') && text.chars().nth(2) == Some('\''))
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 || at >= text.len() {
            return at.min(text.len());
        }
    }
}

fn raw_string(text: &str) -> Option<usize> {
    let body = text.trim_start_matches(['b', 'c']).strip_prefix('r')?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let content = body[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = content.find(&close)?;
    Some(text.len() - content.len() + end + close.len())
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

/// Words, `::` and single characters.
fn tokenize(source: &str) -> Vec<Token> {
    let (mut tokens, mut at, mut line) = (Vec::new(), 0, 1);
    while let Some(first) = source[at..].chars().next() {
        let begin = at;
        if let Some(end) = skipped(source, at) {
            at = end;
        } else {
            let word = |c: char| c.is_alphanumeric() || c == '_';
            let rest = &source[at..];
            at += match first {
                _ if word(first) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
                ':' if rest.starts_with("::") => 2,
                _ => first.len_utf8(),
            };
            let text = source[begin..at].to_owned();
            tokens.push(Token { text, line });
        }
        line += source[begin..at].matches('\n').count();
    }
    tokens.retain(|token| !token.text.trim().is_empty());
    tokens
}

fn text(tokens: &[Token], at: usize) -> &str {
    tokens.get(at).map_or("", |token| token.text.as_str())
}

fn is_word(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// The paths of one `a::{b, c as d, e::*}`, and where it ends.
fn use_tree(tokens: &[Token], mut at: usize, prefix: &[String]) -> (Paths, usize) {
    let mut path = prefix.to_vec();
    loop {
        match text(tokens, at) {
            "{" => return use_group(tokens, at + 1, &path),
            word if word == "*" || is_word(word) => path.push(word.to_owned()),
            _ => break,
        }
        at += 1;
        if text(tokens, at) != "::" {
            break;
        }
        at += 1;
    }
    let last = path.iter().rfind(|word| *word != "self");
    let mut name = last.cloned().unwrap_or_default();
    if text(tokens, at) == "as" {
        name = text(tokens, at + 1).to_owned();
        at += 2;
    }
    let found = (path.len() > prefix.len()).then_some((path, name));
    (found.into_iter().collect(), at)
}

fn use_group(tokens: &[Token], mut at: usize, prefix: &[String]) -> (Paths, usize) {
    let mut found = Vec::new();
    while at < tokens.len() && text(tokens, at) != "}" {
        let (paths, end) = use_tree(tokens, at, prefix);
        found.extend(paths);
        at = end.max(at + 1);
    }
    (found, at + 1)
}

/// The paths that begin at `at`, and where they end.
fn paths_at(tokens: &[Token], at: usize) -> Option<(Paths, usize)> {
    match (text(tokens, at), text(tokens, at + 1)) {
        ("use", _) => Some(use_tree(tokens, at + 1, &[])),
        ("crate" | "super" | "self", "::") => Some(use_tree(tokens, at, &[])),
        _ => None,
    }
}

/// Keeps the open braces, each with the name of the inline module that it opens.
fn track(tokens: &[Token], at: usize, braces: &mut Vec<Option<String>>) {
    match text(tokens, at) {
        "{" => {
            let opens_mod = at >= 2 && text(tokens, at - 2) == "mod";
            braces.push(opens_mod.then(|| text(tokens, at - 1).to_owned()));
        }
        "}" => drop(braces.pop()),
        _ => {}
    }
}

/// Every path that counts, in a file that is module `own`.
fn uses(tokens: &[Token], own: &[String]) -> Vec<Use> {
    let (mut found, mut braces, mut at) = (Vec::new(), Vec::new(), 0);
    while at < tokens.len() {
        let Some((paths, end)) = paths_at(tokens, at) else {
            track(tokens, at, &mut braces);
            at += 1;
            continue;
        };
        let line = tokens[at].line;
        let import = tokens[at].text == "use" && braces.is_empty();
        for (path, name) in paths {
            let inside = own.iter().chain(braces.iter().flatten()).cloned().collect();
            found.push(Use { line, inside, path, name, import });
        }
        at = end;
    }
    found
}

pub(crate) fn module_path(file: &str) -> ModulePath {
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    let words = stem.split('/').filter(|_| stem != "lib");
    words.map(str::to_owned).collect()
}

impl Module {
    pub(crate) fn new(file: &str, source: &str) -> Self {
        let tokens = tokenize(source);
        let triples = tokens.windows(3);
        let mods = triples.filter(|three| three[0].text == "mod" && three[2].text == ";");
        let children = mods.map(|three| three[1].text.clone()).collect();
        let uses = uses(&tokens, &module_path(file));
        Self { file: file.to_owned(), tokens, children, uses }
    }

    pub(crate) fn names(&self, word: &str) -> bool {
        self.tokens.iter().any(|token| token.text == word)
    }
}

//! YAML as a tree in which every value knows where it was written.
//!
//! Scalars stay text until somebody asks for a type, so `model: 1.10` is the
//! string `1.10` where a string is wanted. Depth, size and what aliases repeat
//! are bounded.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};
use zeroize::Zeroizing;

use super::error::SettingsError;

/// How deep values may be nested.
const DEEPEST: usize = 32;
/// How many values a file may hold, those that aliases repeat counted each time.
const MOST_NODES: usize = 100_000;

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// On this line of the file, counted from 1.
    Line(usize),
    /// In this environment variable.
    Variable(Arc<str>),
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) origin: Origin,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) text: String,
    pub(super) origin: Origin,
}

/// A value as it was written.
#[derive(Clone)]
pub(super) struct Scalar {
    pub(super) text: Zeroizing<String>,
    /// Not in quotes: may be a number, a truth value or nothing.
    pub(super) plain: bool,
    /// Came from a variable or a file, so it's likely a secret and is not
    /// quoted in errors.
    pub(super) hidden: bool,
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scalar(…)")
    }
}

impl Scalar {
    pub(super) fn is_null(&self) -> bool {
        self.plain && matches!(self.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }
}

impl Node {
    /// A file with nothing in it.
    pub(super) fn empty() -> Self {
        Self { origin: Origin::Line(1), kind: Kind::Map(Vec::new()) }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Map(entries) => {
                entries.iter().find(|(name, _)| name.text == key).map(|(_, node)| node)
            }
            Kind::Scalar(_) | Kind::List(_) => None,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar(scalar) if scalar.is_null())
    }

    /// What stands here, for an error.
    pub(super) fn found(&self) -> String {
        match &self.kind {
            Kind::Scalar(scalar) if scalar.is_null() => "nothing".to_owned(),
            Kind::Scalar(scalar) if scalar.hidden => "another value, which is not shown".to_owned(),
            Kind::Scalar(scalar) if scalar.plain => format!("`{}`", shortened(&scalar.text)),
            Kind::Scalar(scalar) => format!("the text \"{}\"", shortened(&scalar.text)),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "keys and values".to_owned(),
        }
    }

    /// The value as it may be shown to anybody: `path` says whether it's secret.
    pub(super) fn shown(&self, path: &str) -> String {
        let secret = ["key", "token", "password", "secret"].iter().any(|word| path.ends_with(word));
        match &self.kind {
            Kind::Scalar(scalar) => {
                let refers = scalar.text.starts_with("file:") || scalar.text.starts_with("${");
                if secret && !refers { "********" } else { scalar.text.as_str() }.to_owned()
            }
            Kind::List(_) => "[]".to_owned(),
            Kind::Map(_) => "{}".to_owned(),
        }
    }

    /// Calls `see` with the path of every value and every empty list or map.
    pub(super) fn visit(&self, path: &mut String, see: &mut dyn FnMut(&str, &Node)) {
        let length = path.len();
        match &self.kind {
            Kind::Map(entries) if !entries.is_empty() => {
                for (key, node) in entries {
                    if length > 0 {
                        path.push('.');
                    }
                    path.push_str(&key.text);
                    node.visit(path, see);
                    path.truncate(length);
                }
            }
            Kind::List(items) if !items.is_empty() => {
                for (index, node) in items.iter().enumerate() {
                    path.push_str(&format!("[{index}]"));
                    node.visit(path, see);
                    path.truncate(length);
                }
            }
            _ => see(path, self),
        }
    }

    fn count(&self) -> usize {
        1 + match &self.kind {
            Kind::Scalar(_) => 0,
            Kind::List(items) => items.iter().map(Node::count).sum(),
            Kind::Map(entries) => entries.iter().map(|(_, node)| node.count()).sum(),
        }
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The one document in `text`; a null if it has none.
pub(super) fn parse(text: &str) -> Result<Node, SettingsError> {
    let mut reader =
        Reader { parser: Parser::new_from_str(text), anchors: HashMap::new(), left: MOST_NODES };
    let mut document = None;
    loop {
        let (event, span) = reader.next().map_err(|error| explain(&error, text))?;
        match event {
            Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
            Event::DocumentStart(_) if document.is_some() => {
                return Err(SettingsError::new(
                    "a second document starts here: keep one and delete the `---` line",
                )
                .at(&line(&span)));
            }
            Event::DocumentStart(_) => {}
            Event::StreamEnd => break,
            event => {
                let node = reader.node(event, &span, DEEPEST);
                document = Some(node.map_err(|error| match error {
                    Problem::Yaml(error) => explain(&error, text),
                    Problem::Content(error) => error,
                })?);
            }
        }
    }
    Ok(document.unwrap_or_else(Node::empty))
}

enum Problem {
    Yaml(ScanError),
    Content(SettingsError),
}

impl From<ScanError> for Problem {
    fn from(error: ScanError) -> Self {
        Self::Yaml(error)
    }
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    left: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), ScanError> {
        self.parser.next_event().unwrap_or_else(|| Ok((Event::StreamEnd, Span::default())))
    }

    fn node(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Result<Node, Problem> {
        let origin = line(span);
        let refuse = |message: &str| Problem::Content(SettingsError::new(message).at(&origin));
        if depth == 0 {
            return Err(refuse("values are nested too deep: at most 32 levels are read"));
        }
        let too_many =
            || refuse("too many values: at most 100000 are read, with those that aliases repeat");
        self.left = self.left.checked_sub(1).ok_or_else(too_many)?;
        let (kind, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let text_tag =
                    tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                let plain = style == ScalarStyle::Plain && !text_tag;
                let text = Zeroizing::new(text.into_owned());
                (Kind::Scalar(Scalar { text, plain, hidden: false }), anchor)
            }
            Event::SequenceStart(anchor, _) => (Kind::List(self.list(depth)?), anchor),
            Event::MappingStart(anchor, _) => (Kind::Map(self.map(depth)?), anchor),
            Event::Alias(id) => {
                let node = self.anchors.get(&id);
                let node =
                    node.ok_or_else(|| refuse("this alias stands inside what it repeats"))?;
                self.left = self.left.checked_sub(node.count()).ok_or_else(too_many)?;
                return Ok(Node { origin, kind: node.kind.clone() });
            }
            other => return Err(refuse(&format!("expected a value, found {other:?}"))),
        };
        let node = Node { origin, kind };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Problem> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(items),
                (event, span) => items.push(self.node(event, &span, depth - 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<(Key, Node)>, Problem> {
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut lines = HashMap::new();
        loop {
            let (event, span) = self.next()?;
            let origin = line(&span);
            let text = match event {
                Event::MappingEnd => return Ok(entries),
                Event::Scalar(text, ..) => text.into_owned(),
                _ => {
                    let error =
                        SettingsError::new("expected a key, found a list, keys or an alias");
                    return Err(Problem::Content(error.at(&origin)));
                }
            };
            if let Some(first) = lines.insert(text.clone(), span.start.line()) {
                let error =
                    SettingsError::new(format!("was set before, on line {first}: delete one"));
                return Err(Problem::Content(error.at(&origin).within(&text)));
            }
            let (event, span) = self.next()?;
            let node = self.node(event, &span, depth - 1).map_err(|problem| match problem {
                Problem::Content(error) => Problem::Content(error.within(&text)),
                yaml @ Problem::Yaml(_) => yaml,
            })?;
            entries.push((Key { text, origin }, node));
        }
    }
}

fn line(span: &Span) -> Origin {
    Origin::Line(span.start.line())
}

/// The parser's words, or better ones for what happens most.
fn explain(error: &ScanError, text: &str) -> SettingsError {
    let number = error.marker().line().max(1);
    let written = text.lines().nth(number - 1).unwrap_or_default();
    let indent = &written[..written.len() - written.trim_start().len()];
    let message = if indent.contains('\t') {
        "this line is indented with a tab: use spaces".to_owned()
    } else {
        format!("this is not valid YAML: {}", error.info())
    };
    SettingsError::new(message).at(&Origin::Line(number))
}

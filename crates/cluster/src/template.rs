//! Texts of a spec with `${…}`.

use plimsoll_core::suggest;
use plimsoll_document::Problem;

/// The names in a text, in their order. `$${` does not begin one.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).filter_map(|piece| match piece {
        Piece::Name(name) => Some(name),
        Piece::Plain(_) => None,
    })
}

/// Puts values in place of the names that have one. Others stay as they are: they may be those of a plan.
pub fn render(text: &str, value: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Plain(text) => out.push_str(text),
            Piece::Name(name) => match value(name) {
                Some(value) => out.push_str(&value),
                None => out.extend(["${", name, "}"]),
            },
        }
    }
    out
}

/// The value of a name by parameters: `matrix.NAME`, or a whole number made of some, such as
/// `matrix.total / matrix.size` (rounded up) and `min(matrix.a, matrix.b)`; `None` for other names.
pub fn of_parameters(name: &str, parameters: &[(String, String)]) -> Option<String> {
    let value = |name: &str| {
        let name = name.trim().strip_prefix("matrix.")?;
        parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    match operands(name) {
        Some(_) => whole_number(name, &value).map(|number| number.to_string()),
        None => value(name),
    }
}

/// Returns `true` if a text has the value of this parameter somewhere, alone or in a whole number made of
/// some.
pub fn names_parameter(text: &str, parameter: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || ['.', '_', '-'].contains(&c);
    let is_it = |word: &str| word.strip_prefix("matrix.") == Some(parameter);
    names(text).any(|name| name.split(|c| !is_part(c)).any(is_it))
}

/// A whole number that is made of others.
enum Operation {
    Least,
    /// Rounded up, so that a part counts as a whole.
    Quotient,
}

/// What a name computes, and of which two others; `None` for a plain name.
fn operands(name: &str) -> Option<(Operation, &str, &str)> {
    let name = name.trim();
    if let Some(inner) = name.strip_prefix("min(").and_then(|rest| rest.strip_suffix(')')) {
        return inner.split_once(',').map(|(a, b)| (Operation::Least, a, b));
    }
    name.split_once('/').map(|(a, b)| (Operation::Quotient, a, b))
}

fn whole_number(text: &str, value: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let Some((operation, a, b)) = operands(text) else {
        return text.trim().parse().ok().or_else(|| value(text)?.parse().ok());
    };
    let (a, b) = (whole_number(a, value)?, whole_number(b, value)?);
    match operation {
        Operation::Least => Some(a.min(b)),
        Operation::Quotient => (b > 0).then(|| a.div_ceil(b)),
    }
}

enum Piece<'t> {
    Plain(&'t str),
    Name(&'t str),
}

fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(end) = rest.strip_prefix("${").and_then(|inner| inner.find('}')) {
            let name = &rest[2..2 + end];
            rest = &rest[2 + end + 1..];
            return Some(Piece::Name(name));
        }
        // A name without an end is text; so is anything behind an escaped dollar sign.
        let from = if rest.starts_with("$${") || rest.starts_with("${") { 3.min(rest.len()) } else { 1 };
        let from = (from..=rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
        let end = rest[from..].find('$').map_or(rest.len(), |at| from + at);
        let plain = &rest[..end];
        rest = &rest[end..];
        Some(Piece::Plain(plain))
    })
}

/// The names that texts of a node may use.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// All nodes and the names of their ports.
    pub nodes: &'a [(&'a str, Vec<&'a str>)],
    /// The ports of the node itself.
    pub ports: &'a [&'a str],
    /// The parameters of matrices.
    pub parameters: &'a Vec<String>,
    /// `true` for a text that is repeated for each other node.
    pub per_peer: bool,
}

/// Names without a dot that nodes may have.
const PLAIN: [&str; 9] = ["id", "host", "port", "address", "data", "log", "directory", "spec", "plimsoll"];

impl Scope<'_> {
    /// Returns the problem with a name; `None` if the name is known.
    pub fn complaint(&self, name: &str) -> Option<Problem> {
        if let Some((_, a, b)) = operands(name) {
            let is_number = |text: &str| text.trim().parse::<u64>().is_ok();
            return [a, b]
                .into_iter()
                .filter(|text| !is_number(text))
                .find_map(|text| self.complaint(text.trim()));
        }
        let bare = name.strip_suffix(".port").or_else(|| name.strip_suffix(".host")).unwrap_or(name);
        let all: Vec<&str> = self.nodes.iter().flat_map(|(_, ports)| ports.iter().copied()).collect();
        let of_port = |port: &str, known: &[&str]| known.contains(&port).then_some(());
        let found = match bare.split_once('.') {
            None => PLAIN.contains(&name).then_some(()),
            Some(("port" | "address", port)) => of_port(port, self.ports),
            Some(("peers" | "nodes", port)) => of_port(port, &all),
            Some(("peer", port)) if self.per_peer && !port.contains('.') => {
                (port == "id").then_some(()).or_else(|| of_port(port, &all))
            }
            Some(("peer" | "node", path)) => path.split_once('.').and_then(|(id, port)| {
                let (_, ports) = self.nodes.iter().find(|(known, _)| *known == id)?;
                of_port(port, ports)
            }),
            Some(("matrix", parameter)) => {
                self.parameters.iter().find(|known| *known == parameter).map(|_| ())
            }
            Some(_) => None,
        };
        if found.is_some() {
            return None;
        }
        let problem = Problem::new(format!("unknown name `${{{}}}`", name.escape_debug()));
        let known = PLAIN.iter().map(|name| (*name).to_owned());
        let own = self.ports.iter().flat_map(|port| [format!("port.{port}"), format!("address.{port}")]);
        let peers = all.iter().map(|port| format!("peers.{port}"));
        let nodes = self.nodes.iter().flat_map(|(id, ports)| {
            ports.iter().flat_map(move |port| [format!("node.{id}.{port}"), format!("peer.{id}.{port}")])
        });
        let parameters = self.parameters.iter().map(|name| format!("matrix.{name}"));
        let known: Vec<String> = known.chain(own).chain(peers).chain(nodes).chain(parameters).collect();
        Some(match suggest::closest(name, known.iter().map(String::as_str)) {
            Some(near) => problem.with_hint(format!("did you mean `${{{near}}}`?")),
            None => problem.with_hint("`plimsoll schema cluster` lists the names; $${ writes ${ itself"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_replaced_and_others_stay() {
        let value = |name: &str| (name == "a.b").then(|| "1".to_owned());
        for (text, expected) in [
            ("", ""),
            ("${a.b}", "1"),
            ("x${a.b}y${a.b}", "x1y1"),
            ("${c} $ ${a.b}", "${c} $ 1"),
            ("$${a.b}", "$${a.b}"),
            ("${a.b", "${a.b"),
            ("ü$ü${a.b}ü", "ü$ü1ü"),
            ("$", "$"),
            ("${", "${"),
        ] {
            assert_eq!(render(text, &value), expected, "{text}");
        }
        assert_eq!(names("a${b}$${c}${d.e}").collect::<Vec<_>>(), ["b", "d.e"]);
    }

    #[test]
    fn numbers_are_made_of_parameters() {
        let parameters = [("a", "10"), ("b", "3"), ("zero", "0"), ("text", "x")];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        for (name, expected) in [
            ("matrix.a", Some("10")),
            ("matrix.text", Some("x")),
            ("matrix.a / matrix.b", Some("4")),
            ("matrix.a/5", Some("2")),
            ("min(matrix.a, matrix.b)", Some("3")),
            ("min(matrix.a, matrix.a / matrix.b)", Some("4")),
            ("matrix.a / matrix.zero", None),
            ("matrix.a / matrix.text", None),
            ("min(matrix.a, matrix.c)", None),
            ("matrix.c", None),
            ("a", None),
            ("random_int(1,2)", None),
        ] {
            assert_eq!(of_parameters(name, &parameters).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn a_name_that_nothing_has_is_complained_about() {
        let nodes = [("0", vec!["http", "raft"]), ("1", vec!["http"])];
        let parameters = vec!["c".to_owned()];
        let scope =
            Scope { nodes: &nodes, ports: &["http", "raft"], parameters: &parameters, per_peer: false };
        for good in [
            "id",
            "port.http",
            "address.raft",
            "peers.http",
            "peers.http.port",
            "host",
            "node.1.http.host",
            "node.1.http",
            "peer.0.raft.port",
            "matrix.c",
            "min(matrix.c, 7 / matrix.c)",
            "nodes.http",
        ] {
            assert!(scope.complaint(good).is_none(), "{good}");
        }
        for bad in
            ["ids", "port.x", "peer.http", "node.1.raft", "matrix.d", "matrix.c / matrix.d", "leader.http"]
        {
            assert!(scope.complaint(bad).is_some(), "{bad}");
        }
        let of_peer = Scope { per_peer: true, ..scope };
        assert!(of_peer.complaint("peer.id").is_none() && of_peer.complaint("peer.raft.port").is_none());
        let hint = scope.complaint("port.htp").and_then(|problem| problem.hint);
        assert_eq!(hint.as_deref(), Some("did you mean `${port.http}`?"));
    }
}

//! Scripts of other load generators, recognised by the lines that import them.

/// Returns `true` if a line of JavaScript or TypeScript imports from `k6` or one of its modules.
#[must_use]
pub fn imports_k6(line: &str) -> bool {
    let from = line.trim_start().strip_prefix("import").and_then(|rest| rest.split_once(['"', '\'']));
    from.is_some_and(|(_, from)| ["k6/", "k6'", "k6\""].iter().any(|begin| from.starts_with(begin)))
}

/// Returns `true` if a line of Java, Scala, JavaScript or TypeScript imports from Gatling.
#[must_use]
pub fn imports_gatling(line: &str) -> bool {
    line.trim_start().starts_with("import") && (line.contains("io.gatling.") || line.contains("@gatling.io/"))
}

/// Returns `true` if a line of Python imports `locust`, or something from it or one of its modules.
#[must_use]
pub fn imports_locust(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let module = words.next().filter(|word| matches!(*word, "from" | "import")).and(words.next());
    module.is_some_and(|module| module == "locust" || module.starts_with("locust."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_k6_import_from_it() {
        for (line, is) in [
            ("import http from 'k6/http';", true),
            ("import { check } from \"k6\";", true),
            ("import k6 from './k6.js';", false),
            ("// as in k6: import nothing", false),
            ("const k6 = 'k6/http';", false),
        ] {
            assert_eq!(imports_k6(line), is, "{line}");
        }
    }

    #[test]
    fn simulations_import_from_gatling() {
        for (line, is) in [
            ("import io.gatling.core.Predef._", true),
            ("import static io.gatling.javaapi.core.CoreDsl.*;", true),
            ("import { http } from \"@gatling.io/http\";", true),
            ("// as io.gatling.core does", false),
            ("import gatling", false),
        ] {
            assert_eq!(imports_gatling(line), is, "{line}");
        }
    }

    #[test]
    fn locustfiles_import_from_it() {
        for (line, is) in [
            ("from locust import HttpUser", true),
            ("import locust", true),
            ("    from locust.contrib.fasthttp import FastHttpUser", true),
            ("import locust_plugins", false),
            ("# as in locust", false),
            ("x = 'from locust import task'", false),
        ] {
            assert_eq!(imports_locust(line), is, "{line}");
        }
    }
}

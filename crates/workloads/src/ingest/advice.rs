//! Advice about batches that a store did not accept, from "Troubleshooting" in Arc's guide to load tests.

/// Returns advice about batches that ended this way: by the status of the response or, without one, by the
/// class of the error. `said` is the message of the store, or of the system, for one of them.
pub fn advice(status: Option<u16>, class: &str, said: &str) -> &'static str {
    let said = said.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let too_large = "the batch is larger than the store takes: send smaller ones with --batch-size";
    match status {
        _ if says(&["no space left", "disk full", "disk is full"]) => {
            "the disk of the store is full: make room there, and check the last batches"
        }
        Some(401) => "the store wants a token, or does not know this one: name it with --token",
        Some(403) => "this token may not write: name one that may with --token",
        Some(404 | 405) => {
            "no endpoint there takes such batches: is --url the store, and --format one that it takes?"
        }
        Some(413) => too_large,
        Some(400) if says(&["database name", "database not found"]) => {
            "Arc's names begin with a letter and have letters, digits, - and _: see --database; of InfluxDB the \
             database has to be created first"
        }
        Some(400) if says(&["payload exceeds", "too large", "too big"]) => too_large,
        Some(400 | 415 | 422) => {
            "the store does not understand the batch: see --format, --compression and --time-unit"
        }
        Some(408 | 429 | 503 | 504) => "the store has too much to do: a lower --rate, or fewer --workers",
        Some(500..) => "look at the log of the store: it may be out of memory or disk, or have a defect",
        Some(_) => "look at the log of the store",
        None => match class {
            "timeout" => {
                "the store is too slow: look at its CPU and disk (--watch-process NAME), take fewer --workers or \
                 smaller batches"
            }
            class if class.starts_with("connect") => {
                "no process listens there any more: look at the log of the store"
            }
            "reset" | "io" | "closed_before_response" | "closed_in_response" => {
                "a connection that ends while a batch is sent may mean that it is too large (--batch-size), or \
                 that the store has died: look at its log"
            }
            _ => "--failed FILE writes such batches with their answers",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::advice;

    #[test]
    fn each_failure_of_the_guide_has_its_advice() {
        for (status, class, said, part) in [
            (Some(401), "", r#"{"error":"Authentication required"}"#, "--token"),
            (Some(403), "", "Permission denied: write required", "may not write"),
            (Some(400), "", "invalid database name: must start with a letter", "--database"),
            (Some(400), "", "decompressed payload exceeds 1MB limit", "--batch-size"),
            (Some(413), "", "", "--batch-size"),
            (Some(400), "", "Invalid MessagePack payload", "--format"),
            (Some(500), "", "write data: no space left on device", "disk of the store is full"),
            (Some(500), "", "cannot convert", "log of the store"),
            (Some(503), "", "", "--rate"),
            (Some(404), "", "", "--url"),
            (None, "timeout", "", "--watch-process"),
            (None, "reset", "", "--batch-size"),
            (None, "connect_refused", "", "no process listens"),
            (None, "protocol", "", "--failed"),
        ] {
            assert!(advice(status, class, said).contains(part), "{status:?} {class} {said}");
        }
    }
}

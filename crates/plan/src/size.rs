//! Sizes in bytes.

/// Parses `4096`, `64k`, `64KiB`, `1.5MiB`, `2MB`: with `i` powers of 1024, with `B` alone powers of 1000,
/// and a bare letter means powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "ki" | "kib" => 1024.0,
        "m" | "mi" | "mib" => 1024.0 * 1024.0,
        "g" | "gi" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        _ => return Err(format!("`{text}` is not a size (such as 4096, 64KiB or 2MB)")),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("`{text}` is not a size (such as 4096, 64KiB or 2MB)"))?;
    let bytes = number * factor;
    // 2^53: beyond it a float no longer holds every whole number, and no body is that large.
    if bytes.fract() != 0.0 || bytes > 9_007_199_254_740_992.0 {
        return Err(format!("`{text}` is not a whole number of bytes"));
    }
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_mistakes() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64k", 65_536),
            ("64 KiB", 65_536),
            ("1.5MiB", 1_572_864),
            ("2MB", 2_000_000),
            ("1g", 1 << 30),
            ("7B", 7),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "-1", "1x", "k", "1.2.3", "0.5", "99999999999GB", "1e3"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}

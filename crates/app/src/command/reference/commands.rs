//! The commands and their flags, as a page.

use clap::{Arg, Command};

use super::markdown::{MADE, cell};

pub(super) fn page(command: Command) -> String {
    let mut command = command.term_width(100);
    command.build();
    let mut page = format!("{MADE}# Commands and flags\n\n{}\n", about(&command));
    let shown: Vec<&Command> = command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    for command in &shown {
        let name = command.get_name();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        page.push_str(&format!("\n- [`plimsoll {name}`](#plimsoll-{name}): {about}"));
    }
    page.push('\n');
    for command in shown {
        write(&mut page, command, 2);
    }
    page
}

/// A command with its flags, and the commands below it.
fn write(page: &mut String, command: &Command, level: usize) {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let (hashes, path) = ("#".repeat(level), command.get_bin_name().unwrap_or_else(|| command.get_name()));
    page.push_str(&format!("\n{hashes} {path}\n\n```\n{usage}\n```\n\n{}\n", about(command)));
    let mut headings: Vec<&str> = Vec::new();
    let shown = |arg: &&Arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version");
    let args: Vec<&Arg> = command.get_arguments().filter(shown).collect();
    for arg in &args {
        let heading = heading(arg);
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for name in headings {
        page.push_str(&format!("\n**{name}**\n\n"));
        args.iter().filter(|arg| heading(arg) == name).for_each(|arg| flag(page, arg));
    }
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        page.push_str(&format!("\n```\n{after}\n```\n"));
    }
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        write(page, below, level + 1);
    }
}

fn heading(arg: &Arg) -> &str {
    arg.get_help_heading().unwrap_or(if arg.is_positional() { "Arguments" } else { "Options" })
}

/// `- `-c`, `--connections N`: what it does`.
fn flag(page: &mut String, arg: &Arg) {
    let mut names: Vec<String> = Vec::new();
    names.extend(arg.get_short().map(|short| format!("`-{short}`")));
    for alias in arg.get_all_short_aliases().unwrap_or_default() {
        names.push(format!("`-{alias}`"));
    }
    let value = match arg.get_value_names() {
        Some(values) if arg.get_action().takes_values() => values.join(" "),
        _ => String::new(),
    };
    match arg.get_long() {
        Some(long) => names.push(format!("`{}`", format!("--{long} {value}").trim_end())),
        None if arg.is_positional() => names.push(format!("`{value}`")),
        None => {}
    }
    let text = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut paragraphs = text.split("\n\n");
    page.push_str(&format!("- {}: {}\n", names.join(", "), cell(paragraphs.next().unwrap_or_default())));
    for paragraph in paragraphs {
        page.push_str(&format!("\n  {}\n", cell(paragraph)));
    }
    let possible = arg.get_possible_values();
    if arg.get_action().takes_values() && !possible.is_empty() {
        let values: Vec<String> = possible
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}` ({})", value.get_name(), cell(&help.to_string())),
                None => format!("`{}`", value.get_name()),
            })
            .collect();
        page.push_str(&format!("  One of {}.\n", values.join(", ")));
    }
}

fn about(command: &Command) -> String {
    let text = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    text.replace('<', "&lt;")
}

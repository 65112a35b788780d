//! Selects what is wanted from an archive or directory: patterns from options and files, and paths.

use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use refrain::directory::{Decision, Selection, SelectionBuilder, SelectionError};
use refrain_storage::Blocking;

use crate::args::PatternArgs;
use crate::entry_paths::{inside, normalized, prefix_of};
use crate::failure::{Failure, Result};
use crate::paths::{io_failure, is_dash};
use crate::standard;
use crate::text::unescaped;

/// The rules of the options, including files of patterns.
///
/// # Errors
/// `Usage` for an invalid pattern, `Io` for files that cannot be read.
pub fn load_patterns(args: &PatternArgs) -> Result<SelectionBuilder> {
    let mut builder = Selection::builder();
    for path in &args.exclude_from {
        builder.exclude_lines(&read_all(path)?);
    }
    for pattern in &args.exclude {
        builder.exclude(pattern.as_bytes());
    }
    for pattern in &args.include {
        builder.include(pattern.as_bytes());
    }
    // Reports wrong patterns before any work.
    build(&builder)?;
    Ok(builder)
}

/// The rules as accepted by the engine.
///
/// # Errors
/// As [`load_patterns`].
pub fn build(builder: &SelectionBuilder) -> Result<Selection> {
    let named = |error: SelectionError| Failure::usage("", error.to_string());
    builder.build().map_err(named)
}

/// The paths of `--files-from`: lines with escapes as written by `list`, or raw and ended by NUL.
///
/// # Errors
/// `Io`; `Usage` for paths that lead out of the directory.
pub fn load_paths(list: &Path, is_null: bool) -> Result<Vec<Vec<u8>>> {
    let bytes = read_all(list)?;
    let end = if is_null { 0 } else { b'\n' };
    let lines = bytes.split(|&byte| byte == end);
    let lines = lines.filter(|line| !line.is_empty());
    let paths: Vec<Vec<u8>> = if is_null {
        lines.map(<[u8]>::to_vec).collect()
    } else {
        lines.map(unescaped).collect()
    };
    Ok(paths)
}

fn read_all(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if is_dash(path) {
        standard::input()
            .and_then(|stdin| Blocking(stdin).read_to_end(&mut bytes))
            .map(|_| bytes)
    } else {
        fs::read(path)
    };
    read.map_err(io_failure(path, "read"))
}

/// What is wanted of an archive.
#[derive(Debug, Clone, Default)]
pub struct ArchiveSelection {
    patterns: SelectionBuilder,
    /// Paths as printed by `list`; if empty, all paths are wanted.
    paths: Vec<Vec<u8>>,
    /// Paths that may be patterns, as for `list`.
    globs: Vec<Vec<u8>>,
}

/// What is wanted of a member.
#[derive(Debug, Clone)]
pub enum Wanted {
    Everything,
    /// These entries.
    Part(Box<Selection>),
    Nothing,
}

impl ArchiveSelection {
    /// The paths, as far as the patterns allow.
    ///
    /// # Errors
    /// As [`load_patterns`].
    pub fn load(args: &PatternArgs, paths: &[Vec<u8>]) -> Result<ArchiveSelection> {
        Ok(ArchiveSelection {
            patterns: load_patterns(args)?,
            paths: paths.to_vec(),
            globs: paths
                .iter()
                .filter(|path| has_wildcards(path))
                .cloned()
                .collect(),
        })
    }

    /// The same options with other paths, which are not patterns.
    #[must_use]
    pub fn with_paths(&self, paths: Vec<Vec<u8>>, globs: Vec<Vec<u8>>) -> ArchiveSelection {
        ArchiveSelection {
            patterns: self.patterns.clone(),
            paths,
            globs,
        }
    }

    /// Whether nothing is left out.
    pub fn is_everything(&self) -> bool {
        self.paths.is_empty()
            && self.globs.is_empty()
            && self
                .patterns
                .build()
                .is_ok_and(|rules| rules.is_everything())
    }

    /// Whether there are patterns, which may match any entry.
    pub fn has_patterns(&self) -> bool {
        let rules = self.patterns.build();
        !rules.is_ok_and(|rules| rules.is_everything())
    }

    /// The requested paths.
    pub fn paths(&self) -> &[Vec<u8>] {
        &self.paths
    }

    /// What is wanted of a member with entries, one of `member_count`. If their number is unknown,
    /// paths may begin with the member's name or not.
    ///
    /// # Errors
    /// As [`load_patterns`].
    pub fn for_tree(&self, name: &[u8], member_count: Option<usize>) -> Result<Wanted> {
        let prefixes = match member_count {
            Some(count) => vec![prefix_of(name, count)],
            None => vec![prefix_of(name, 1), prefix_of(name, 2)],
        };
        let mut builder = self.patterns.clone();
        let mut is_named = self.paths.is_empty() && self.globs.is_empty();
        for path in &self.paths {
            for inside in prefixes.iter().filter_map(|prefix| inside(path, prefix)) {
                builder.path(inside);
                is_named = true;
            }
        }
        for (glob, prefix) in self
            .globs
            .iter()
            .flat_map(|glob| prefixes.iter().map(move |p| (glob, p)))
        {
            add_pattern(&mut builder, glob, prefix);
            is_named = true;
        }
        let rules = build(&builder)?;
        Ok(match is_named {
            false => Wanted::Nothing,
            true if rules.is_everything() => Wanted::Everything,
            true => Wanted::Part(Box::new(rules)),
        })
    }

    /// Whether a file member is wanted.
    ///
    /// # Errors
    /// As [`load_patterns`].
    pub fn for_file(&self, name: &[u8]) -> Result<Wanted> {
        let is_named = |path: &Vec<u8>| normalized(path) == normalized(name);
        let rules = build(&self.patterns)?;
        let is_wanted = rules.decide(name, false) == Decision::Include;
        let mut globs = Selection::builder();
        for glob in &self.globs {
            add_pattern(&mut globs, glob, b"");
        }
        let is_matched = || -> Result<bool> {
            let globs = build(&globs)?;
            Ok(!globs.is_everything() && globs.decide(name, false) == Decision::Include)
        };
        let is_everything = self.paths.is_empty() && self.globs.is_empty();
        if is_wanted && (is_everything || self.paths.iter().any(is_named) || is_matched()?) {
            Ok(Wanted::Everything)
        } else {
            Ok(Wanted::Nothing)
        }
    }
}

/// The patterns of `list`, each of which should match something.
#[derive(Debug, Default)]
pub struct ListSelection {
    options: SelectionBuilder,
    patterns: Vec<Vec<u8>>,
}

/// The patterns applied to one member.
#[derive(Debug)]
pub struct MemberPatterns {
    rules: Selection,
    /// Each pattern by itself, with its number.
    single: Vec<(usize, Selection)>,
}

impl ListSelection {
    /// The entries that a pattern matches, as far as the options allow; without patterns everything
    /// that the options allow.
    ///
    /// # Errors
    /// As [`load_patterns`].
    pub fn load(args: &PatternArgs, patterns: Vec<Vec<u8>>) -> Result<ListSelection> {
        let selection = ListSelection {
            options: load_patterns(args)?,
            patterns,
        };
        selection.for_member(b"", 1)?;
        Ok(selection)
    }

    /// The patterns for a member. One that begins with the member's name and a slash applies to
    /// what follows, from the member's root.
    ///
    /// # Errors
    /// As [`load_patterns`].
    pub fn for_member(&self, name: &[u8], member_count: usize) -> Result<MemberPatterns> {
        let prefix = prefix_of(name, member_count);
        let mut single = Vec::new();
        let mut all = self.options.clone();
        for (number, pattern) in self.patterns.iter().enumerate() {
            let mut one = Selection::builder();
            for builder in [&mut all, &mut one] {
                add_pattern(builder, pattern, &prefix);
            }
            single.push((number, build(&one)?));
        }
        let rules = build(&all)?;
        Ok(MemberPatterns { rules, single })
    }

    /// The patterns whose numbers are not in `matched`.
    pub fn unmatched<'a>(&'a self, matched: &'a [bool]) -> impl Iterator<Item = &'a [u8]> {
        let patterns = self.patterns.iter().enumerate();
        let unmatched = patterns.filter(|(number, _)| !matched.get(*number).unwrap_or(&false));
        unmatched.map(|(_, pattern)| pattern.as_slice())
    }

    /// One flag per pattern.
    pub fn matched(&self) -> Vec<bool> {
        vec![false; self.patterns.len()]
    }
}

/// Whether a path may be meant as a pattern.
pub fn has_wildcards(path: &[u8]) -> bool {
    path.iter().any(|byte| b"*?[".contains(byte))
}

/// Adds a pattern, which may also be a path, for a member with this prefix. One that begins with
/// the prefix applies to what follows, from the member's root.
fn add_pattern(builder: &mut SelectionBuilder, pattern: &[u8], prefix: &[u8]) {
    match inside(pattern, prefix).filter(|_| !prefix.is_empty()) {
        Some(rest) if rest != b"." => {
            builder.include(&[b"/", rest].concat());
            builder.path(rest);
            return;
        }
        Some(rest) => {
            builder.path(rest);
            return;
        }
        None => {}
    }
    builder.path(pattern);
    match pattern.strip_prefix(b"./") {
        // Anchored at the root, like a path spelled this way.
        Some(rest) if !normalized(rest).is_empty() => {
            builder.include(&[b"/", rest].concat());
        }
        None if !normalized(pattern).is_empty() => {
            builder.include(pattern);
        }
        _ => {}
    }
}

impl MemberPatterns {
    /// Whether an entry is listed; marks the patterns that it matches in `matched`.
    pub fn wants(&mut self, path: &[u8], is_directory: bool, matched: &mut [bool]) -> bool {
        if self.rules.decide(path, is_directory) != Decision::Include {
            return false;
        }
        self.single.retain(|(number, rule)| {
            let Some(is_matched) = matched.get_mut(*number) else {
                return false;
            };
            *is_matched |= rule.decide(path, is_directory) == Decision::Include;
            !*is_matched
        });
        true
    }
}

/// The rules for storing a directory, with the paths to store if there is a list.
#[derive(Debug, Clone, Default)]
pub struct WalkSelection {
    pub rules: Selection,
    pub paths: Option<Vec<Vec<u8>>>,
}

/// Where the paths to store come from.
#[derive(Debug, Clone, Copy)]
pub struct PathList<'a> {
    pub file: &'a PathBuf,
    pub is_null: bool,
}

impl WalkSelection {
    /// Reads files of patterns and the list of paths.
    ///
    /// # Errors
    /// As [`load_patterns`] and [`load_paths`].
    pub fn load(args: &PatternArgs, list: Option<PathList>) -> Result<WalkSelection> {
        let load = |list: PathList| load_paths(list.file, list.is_null);
        Ok(WalkSelection {
            rules: build(&load_patterns(args)?)?,
            paths: list.map(load).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive_selection(paths: &[&str], exclude: &[&str]) -> ArchiveSelection {
        let args = PatternArgs {
            exclude: exclude.iter().map(Into::into).collect(),
            ..PatternArgs::default()
        };
        let paths: Vec<Vec<u8>> = paths.iter().map(|path| path.as_bytes().to_vec()).collect();
        ArchiveSelection::load(&args, &paths).unwrap()
    }

    fn decisions(wanted: &Wanted, paths: &[&str]) -> Vec<Decision> {
        let Wanted::Part(rules) = wanted else {
            panic!("{wanted:?}");
        };
        let decide = |path: &&str| rules.decide(path.as_bytes(), false);
        paths.iter().map(decide).collect()
    }

    #[test]
    fn paths_select_members_and_parts_of_them() {
        use Decision::{Exclude, Include};
        let selection = archive_selection(&["tree/src", "file", "whole/"], &["*.o"]);
        let file = |name: &[u8]| selection.for_file(name).unwrap();
        assert!(matches!(file(b"file"), Wanted::Everything));
        assert!(matches!(file(b"files"), Wanted::Nothing));
        let tree = selection.for_tree(b"tree", Some(3)).unwrap();
        let paths = ["src", "src/a", "src/a.o", "other"];
        assert_eq!(
            decisions(&tree, &paths),
            [Include, Include, Exclude, Exclude]
        );
        let whole = selection.for_tree(b"whole", Some(3)).unwrap();
        assert_eq!(decisions(&whole, &["a", "a.o"]), [Include, Exclude]);
        assert!(matches!(
            selection.for_tree(b"tree2", Some(3)).unwrap(),
            Wanted::Nothing
        ));
        let all = archive_selection(&[], &[]);
        assert!(all.is_everything() && matches!(all.for_file(b"x").unwrap(), Wanted::Everything));
        assert!(matches!(
            all.for_tree(b"t", Some(1)).unwrap(),
            Wanted::Everything
        ));
        let root = archive_selection(&["."], &[])
            .for_tree(b"t", Some(1))
            .unwrap();
        assert_eq!(decisions(&root, &["a"]), [Include]);
        let stream = archive_selection(&["tree/a", "b"], &[]);
        let stream = stream.for_tree(b"tree", None).unwrap();
        assert_eq!(
            decisions(&stream, &["a", "b", "c"]),
            [Include, Include, Exclude]
        );
    }

    #[test]
    fn list_patterns_are_counted_one_by_one() {
        let patterns = ["*.c", "tree/src", "none", "odd[1]"];
        let patterns = patterns.map(|text| text.as_bytes().to_vec()).to_vec();
        let list = ListSelection::load(&PatternArgs::default(), patterns).unwrap();
        let mut matched = list.matched();
        let mut member = list.for_member(b"tree", 2).unwrap();
        for (path, expected) in [
            ("a.c", true),
            ("deep/b.c", true),
            ("src/x", true),
            ("deep/src/x", false),
            ("odd[1]", true),
            ("odd1", true),
            ("other", false),
        ] {
            assert_eq!(
                member.wants(path.as_bytes(), false, &mut matched),
                expected,
                "{path}"
            );
        }
        let unmatched: Vec<&[u8]> = list.unmatched(&matched).collect();
        assert_eq!(unmatched, [b"none"]);
    }

    #[test]
    fn wrong_patterns_are_named() {
        let args = PatternArgs {
            include: vec!["[".into()],
            ..PatternArgs::default()
        };
        let text = load_patterns(&args).unwrap_err().to_string();
        assert!(text.contains("pattern \"[\""), "{text}");
    }
}

//! The line of `list -l`, similar to `ls -l` and `tar -tv`.

use refrain::{EntryKind, Owner};

use super::row::Row;
use crate::text::escaped;
use refrain_page::utc_text;

/// The initial widths; a longer value widens its column for later lines.
const OWNER_COLUMNS: usize = 11;
const SIZE_COLUMNS: usize = 9;

/// The widths of the columns so far: lines are written as they come.
#[derive(Debug)]
pub struct Columns {
    owner: usize,
    size: usize,
}

impl Default for Columns {
    fn default() -> Self {
        Columns {
            owner: OWNER_COLUMNS,
            size: SIZE_COLUMNS,
        }
    }
}

impl Columns {
    /// `-rw-r--r-- root/root        1234 2026-11-21T20:40:00Z path`
    pub fn line(&mut self, row: &Row, numeric_owner: bool) -> String {
        let mode = mode_text(type_letter(row), row.mode());
        let owner = row.entry().map_or_else(
            || "-".to_string(),
            |entry| owner_text(&entry.owner, numeric_owner),
        );
        let size = match row.entry() {
            Some(entry) if entry.kind.is_device() => {
                format!("{},{}", entry.device.0, entry.device.1)
            }
            _ => row.size_bytes().to_string(),
        };
        let modified = row
            .modified()
            .map_or_else(|| "-".to_string(), |time| utc_text(time.seconds));
        self.owner = self.owner.max(owner.chars().count());
        self.size = self.size.max(size.len());
        let (owner_width, size_width) = (self.owner, self.size);
        let path = escaped(row.path);
        let link = link_text(row);
        format!("{mode} {owner:<owner_width$} {size:>size_width$} {modified:>20} {path}{link}")
    }
}

fn link_text(row: &Row) -> String {
    let Some(entry) = row.entry() else {
        return String::new();
    };
    match (entry.kind, &entry.link_target) {
        (EntryKind::Hardlink, Some(target)) => format!(" link to {}", escaped(target)),
        (_, Some(target)) => format!(" -> {}", escaped(target)),
        (_, None) => String::new(),
    }
}

fn type_letter(row: &Row) -> char {
    match row.entry().map(|entry| entry.kind) {
        None | Some(EntryKind::File) => '-',
        Some(EntryKind::Directory) => 'd',
        Some(EntryKind::Symlink) => 'l',
        Some(EntryKind::Hardlink) => 'h',
        Some(EntryKind::CharacterDevice) => 'c',
        Some(EntryKind::BlockDevice) => 'b',
        Some(EntryKind::Fifo) => 'p',
        Some(EntryKind::Other | EntryKind::Raw | EntryKind::Removed) => '?',
    }
}

/// Ten characters, as printed by `ls -l`.
fn mode_text(letter: char, mode: Option<u32>) -> String {
    let Some(mode) = mode else {
        return format!("{letter}?????????");
    };
    let bit = |mask: u32, set: char| if mode & mask != 0 { set } else { '-' };
    let execute = |mask: u32, special: u32, letters: (char, char)| match (
        mode & special != 0,
        mode & mask != 0,
    ) {
        (true, true) => letters.0,
        (true, false) => letters.1,
        (false, true) => 'x',
        (false, false) => '-',
    };
    [
        letter,
        bit(0o400, 'r'),
        bit(0o200, 'w'),
        execute(0o100, 0o4000, ('s', 'S')),
        bit(0o040, 'r'),
        bit(0o020, 'w'),
        execute(0o010, 0o2000, ('s', 'S')),
        bit(0o004, 'r'),
        bit(0o002, 'w'),
        execute(0o001, 0o1000, ('t', 'T')),
    ]
    .into_iter()
    .collect()
}

/// `user/group`, each by name if the archive has it.
fn owner_text(owner: &Owner, numeric: bool) -> String {
    let one = |name: &[u8], number: u64| {
        if numeric || name.is_empty() { number.to_string() } else { escaped(name) }
    };
    let (user, group) = (one(&owner.user, owner.uid), one(&owner.group, owner.gid));
    format!("{user}/{group}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use refrain::{Entry, Timestamp};

    use super::*;

    #[test]
    fn modes_are_written_as_ls_writes_them() {
        for (letter, mode, text) in [
            ('-', 0o644, "-rw-r--r--"),
            ('d', 0o755, "drwxr-xr-x"),
            ('-', 0o4755, "-rwsr-xr-x"),
            ('-', 0o4644, "-rwSr--r--"),
            ('-', 0o2711, "-rwx--s--x"),
            ('-', 0o2600, "-rw---S---"),
            ('d', 0o1777, "drwxrwxrwt"),
            ('d', 0o1770, "drwxrwx--T"),
            ('-', 0, "----------"),
        ] {
            assert_eq!(mode_text(letter, Some(mode)), text);
        }
        assert_eq!(mode_text('-', None), "-?????????");
    }

    fn entry(kind: EntryKind) -> Entry {
        Entry {
            path: b"p".to_vec(),
            kind,
            mode: 0o640,
            owner: Arc::new(Owner {
                uid: 1000,
                gid: 7,
                user: b"ann".to_vec(),
                group: Vec::new(),
            }),
            modified: Timestamp::default(),
            size_bytes: 12,
            ..Entry::default()
        }
    }

    #[test]
    fn lines_have_owner_size_time_and_link() {
        let mut columns = Columns::default();
        let mut line = |entry: &Entry, numeric| {
            columns.line(&Row::from_entry("a", b"", &entry.path, entry), numeric)
        };
        assert_eq!(
            line(&entry(EntryKind::File), false),
            "-rw-r----- ann/7              12 1970-01-01T00:00:00Z p"
        );
        assert_eq!(
            line(&entry(EntryKind::File), true),
            "-rw-r----- 1000/7             12 1970-01-01T00:00:00Z p"
        );
        let mut link = entry(EntryKind::Symlink);
        link.link_target = Some(b"to\xff".to_vec());
        assert!(line(&link, false).ends_with(" p -> to\\377"));
        link.kind = EntryKind::Hardlink;
        assert!(line(&link, false).starts_with('h'));
        assert!(line(&link, false).ends_with(" p link to to\\377"));
        let mut device = entry(EntryKind::BlockDevice);
        device.device = (8, 17);
        assert!(line(&device, false).contains("      8,17 1970"));
        let mut wide = entry(EntryKind::File);
        wide.size_bytes = 1 << 40;
        assert!(line(&wide, false).contains(" 1099511627776 1970"));
        assert!(line(&entry(EntryKind::File), false).contains("            12 1970"));
    }
}

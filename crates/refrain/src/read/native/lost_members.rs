//! Members with lost starts: their content, and what else is known of them.

use std::collections::HashMap;

use refrain_format::{IndexEntries, MemberEnd, MemberKind, MemberStart};

/// A member's start, and the offset of its frame.
type FoundStart = (u64, MemberStart);

/// The starts of all members, by id: those found, and for every gap between them one that
/// represents the members whose starts are lost there. `entries` are sorted.
pub(super) fn with_lost_members(
    found: Vec<FoundStart>,
    ends: &HashMap<u64, (u64, MemberEnd)>,
    entries: &[IndexEntries],
    content_end: u64,
) -> Vec<FoundStart> {
    let mut all: Vec<FoundStart> = Vec::with_capacity(found.len());
    // Where the next member starts if none is missing; its content starts at `content_at`.
    let (mut next_id, mut content_at) = (0, 0);
    let lost = |id: u64, content_start: u64| {
        let has_entries = entries
            .binary_search_by_key(&id, |row| row.member_id)
            .is_ok();
        let end = ends.get(&id).map(|(_, end)| end);
        (0, lost_start(id, content_start, end, has_entries))
    };
    let is_there = |id: u64, bytes: u64| bytes > 0 || ends.contains_key(&id);
    for start in found {
        let (id, content_start) = (start.1.member_id, start.1.content_start);
        let bytes = content_start.saturating_sub(content_at);
        if id > next_id && is_there(next_id, bytes) {
            all.push(lost(next_id, content_at));
        }
        next_id = id.saturating_add(1);
        content_at = match ends.get(&id) {
            Some((_, end)) => content_start.saturating_add(end.content_bytes),
            // Everything up to the next known member counts as its content.
            None => u64::MAX,
        };
        all.push(start);
    }
    let bytes = content_end.saturating_sub(content_at);
    if is_there(next_id, bytes) {
        all.push(lost(next_id, content_at));
    }
    all
}

/// A substitute for a lost member start.
fn lost_start(
    member_id: u64,
    content_start: u64,
    end: Option<&MemberEnd>,
    has_entries: bool,
) -> MemberStart {
    let is_tree = has_entries || end.is_some_and(|end| end.entries_hash.is_some());
    MemberStart {
        member_id,
        content_start,
        kind: if is_tree { MemberKind::Tree } else { MemberKind::Stream },
        name: format!("lost-member-{member_id}").into_bytes(),
        mode: None,
        modified: None,
        content_bytes_hint: None,
        is_sparse: false,
        layers: None,
        extensions: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(member_id: u64, content_start: u64) -> FoundStart {
        (
            9,
            MemberStart {
                name: b"found".to_vec(),
                ..lost_start(member_id, content_start, None, false)
            },
        )
    }

    fn ends(lengths: &[(u64, u64)]) -> HashMap<u64, (u64, MemberEnd)> {
        let end = |&(member_id, content_bytes): &(u64, u64)| {
            let end = MemberEnd::of_content(member_id, content_bytes);
            (member_id, (9, end))
        };
        lengths.iter().map(end).collect()
    }

    fn found(starts: Vec<FoundStart>, lengths: &[(u64, u64)], content: u64) -> Vec<(u64, u64)> {
        let all = with_lost_members(starts, &ends(lengths), &[], content);
        all.iter()
            .map(|(_, start)| (start.member_id, start.content_start))
            .collect()
    }

    #[test]
    fn content_between_members_that_are_known_belongs_to_a_lost_one() {
        let all = [(0, 10), (1, 10), (2, 10)];
        let (a, b, c) = (start(0, 0), start(1, 10), start(2, 20));
        let whole = vec![(0, 0), (1, 10), (2, 20)];
        let starts = vec![a.clone(), b.clone(), c.clone()];
        assert_eq!(found(starts, &all, 30), whole);
        for lost in 0..3 {
            let mut starts = vec![a.clone(), b.clone(), c.clone()];
            starts.remove(lost);
            assert_eq!(found(starts, &all, 30), whole, "without start {lost}");
        }
        // Without the end of the first one, its content extends to the next member.
        assert_eq!(found(vec![a.clone(), c], &[(2, 10)], 30), [(0, 0), (2, 20)]);
        assert_eq!(found(vec![], &[], 30), [(0, 0)]);
        assert_eq!(found(vec![a], &[(0, 30)], 30), [(0, 0)]);
    }
}

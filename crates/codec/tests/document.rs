//! Compares the tables of codecs and filters in section 5.3 of `docs/format.md` with the code, so
//! that neither can change alone.
#![allow(clippy::unwrap_used)]

use refrain_codec::{
    BlockPlan, CodecId, FilterPlan, FilterStep, Settings, Workspace, codecs, encode_block,
};

const DOCUMENT: &str = include_str!("../../../docs/format.md");

/// The cells of the rows of the table in section 5.3 whose header starts with these cells.
fn rows(head: &str) -> Vec<Vec<&'static str>> {
    let section = DOCUMENT.split("### 5.3").nth(1).unwrap();
    let lines = section.lines().skip_while(|line| !line.starts_with(head));
    let table = lines.skip(2).take_while(|line| line.starts_with('|'));
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect();
    let rows: Vec<Vec<_>> = table.map(cells).collect();
    assert!(!rows.is_empty(), "section 5.3 has no table {head}");
    rows
}

fn codec_rows() -> Vec<(u16, Vec<&'static str>)> {
    let rows = rows("| Codec | name |").into_iter();
    rows.filter_map(|row| Some((row[0].parse().ok()?, row)))
        .filter(|(id, _)| *id != CodecId::NAMED.0)
        .collect()
}

#[test]
fn numbers_and_names_of_codecs_match_the_document() {
    let documented: Vec<(u16, &str)> = codec_rows().iter().map(|(id, row)| (*id, row[1])).collect();
    let mut built: Vec<(u16, &str)> = codecs()
        .map(|codec| (codec.describe().id.0, codec.describe().name))
        .collect();
    built.sort_unstable();
    assert_eq!(documented, built);
    let ranges = [
        format!("{}–", CodecId::FIRST_RESERVED.0),
        format!("{}–", CodecId::FIRST_UNASSIGNED.0),
        CodecId::NAMED.0.to_string(),
        format!("{}–{}", CodecId::PLUGINS.start(), CodecId::PLUGINS.end()),
    ];
    for range in ranges {
        let rows = rows("| Codec | name |");
        assert!(
            rows.iter().any(|row| row[0].starts_with(&range)),
            "no row {range}"
        );
    }
}

#[test]
fn lengths_of_parameters_match_the_document() {
    let raw: Vec<u8> = (0..5000_u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
    for (id, row) in codec_rows() {
        // "order (1 byte), model memory in bytes (4 bytes)": the numbers before "byte" count.
        let words: Vec<&str> = row[3].split([' ', '(', ')', ',']).collect();
        let documented: usize = words
            .windows(2)
            .filter(|pair| pair[1].starts_with("byte"))
            .filter_map(|pair| pair[0].parse::<usize>().ok())
            .sum();
        let plan = BlockPlan {
            codec: CodecId(id),
            settings: Settings::default(),
            rivals: [None; 2],
            filters: FilterPlan::None,
            memory_limit_bytes: u64::MAX,
        };
        let coded = encode_block(&mut Workspace::new(), &raw, &plan, &mut Vec::new()).unwrap();
        assert_eq!(coded.codec, CodecId(id), "{} fell back", row[1]);
        let written = coded.params.as_bytes().len();
        assert_eq!(written, documented, "{}: {}", row[1], row[3]);
    }
}

#[test]
fn numbers_names_and_parameters_of_filters_match_the_document() {
    let rows = rows("| filter id | name |");
    let plugins = FilterStep::PLUGINS;
    let plugins = format!("{}–{}", plugins.start(), plugins.end());
    assert!(rows.iter().any(|row| row[0] == plugins), "no row {plugins}");
    for id in 0..=u8::MAX {
        let parameters: Vec<u8> = (0..=u8::MAX)
            .filter(|&parameter| FilterStep::new(id, parameter).is_ok())
            .collect();
        let Some(row) = rows.iter().find(|row| row[0] == id.to_string()) else {
            assert!(parameters.is_empty(), "filter {id} is not in the document");
            continue;
        };
        let (first, last) = (parameters[0], parameters[parameters.len() - 1]);
        let documented =
            if first == last { first.to_string() } else { format!("{first} to {last}") };
        assert!(
            row[2].ends_with(&documented),
            "filter {id}: the document says {:?}, the code {documented}",
            row[2]
        );
        let name = FilterStep::new(id, first).unwrap().to_string();
        assert!(
            name.starts_with(row[1]),
            "filter {id} is {name}, not {}",
            row[1]
        );
    }
}

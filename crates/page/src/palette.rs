//! The colors of stages, shared by all pages.

use serde_json::{Map, Value};

/// The hue of each of the engine's stages in degrees: blue finds repeats, green to yellow encodes
/// and decodes, violet to red is input and output.
const HUES: [(&str, u16); 24] = [
    ("scan", 215),
    ("find repeats", 230),
    ("match", 200),
    ("commit", 188),
    ("retain", 178),
    ("encode", 165),
    ("encode extents", 155),
    ("encode records", 150),
    ("codec zstd", 135),
    ("codec lz4", 120),
    ("codec deflate", 110),
    ("codec lzma", 95),
    ("codec bzip2", 80),
    ("codec ppmd", 70),
    ("codec bwt", 60),
    ("codec bwt2", 54),
    ("codec cm", 48),
    ("decode", 100),
    ("assemble", 40),
    ("read", 285),
    ("hash", 260),
    ("deliver", 318),
    ("write", 335),
    ("restore", 350),
];

/// Others get a hue from their name.
fn hue(stage: &str) -> u16 {
    let known = HUES.iter().find(|(name, _)| *name == stage);
    known.map_or_else(
        || (stage.bytes().map(u16::from).fold(0, u16::wrapping_add) as u32 * 47 % 360) as u16,
        |(_, hue)| *hue,
    )
}

/// The color of a stage (CSS), for light and dark schemes.
pub fn stage_color(stage: &str) -> String {
    format!("hsl({} 52% var(--stage))", hue(stage))
}

pub(crate) fn hues_json() -> Value {
    let rows = HUES
        .iter()
        .map(|(name, hue)| ((*name).to_owned(), (*hue).into()));
    Value::Object(rows.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_one_color() {
        let mut seen = std::collections::BTreeSet::new();
        assert!(
            HUES.iter()
                .all(|(name, hue)| seen.insert(hue) && *hue < 360 && !name.is_empty())
        );
        assert_eq!(stage_color("codec zstd"), "hsl(135 52% var(--stage))");
        assert_eq!(stage_color("other"), stage_color("other"));
    }
}

//! Recovery data, for people and for scripts.

use refrain::{RecoveryInfo, RecoveryState};
use serde_json::{Value, json};

use crate::text::printable;
use crate::units::{bytes_text, percent_text};

/// The share that may be lost: `10.0 % of the archive`.
pub fn recovery_share_text(info: &RecoveryInfo) -> String {
    let share = percent_text(u64::from(info.share()), 10_000);
    match info.sets {
        1 => format!("{share} of the archive"),
        _ => format!("{share} of each part of the archive"),
    }
}

/// The row of `info`.
pub fn recovery_text(info: &RecoveryInfo) -> String {
    let share = recovery_share_text(info);
    let bytes = bytes_text(info.recovery_bytes);
    let sets = match info.sets {
        1 => String::new(),
        sets => format!(" in {sets} sets"),
    };
    let mut text = format!("{share} may be lost and healed ({bytes} of recovery data{sets})");
    if info.unprotected_bytes > 0 {
        text.push_str(&format!(", but {}", unprotected_text(info)));
    }
    text
}

/// What to say of bytes behind the last complete generation, if there are any.
pub fn incomplete_text(label: &str, incomplete_bytes: u64) -> Option<String> {
    (incomplete_bytes > 0).then(|| {
        format!(
            "{}: an incomplete generation of {} follows, and is ignored: `add` is running, or was \
             ended, or the file was cut off",
            printable(label),
            bytes_text(incomplete_bytes)
        )
    })
}

/// What has no recovery data.
pub fn unprotected_text(info: &RecoveryInfo) -> String {
    let bytes = bytes_text(info.unprotected_bytes);
    format!("{bytes} of the archive have no recovery data")
}

/// The values for scripts.
pub fn recovery_json(info: &RecoveryInfo) -> Value {
    json!({
        "protected_bytes": info.protected_bytes,
        "recovery_bytes": info.recovery_bytes,
        "data_rows": info.data_rows,
        "parity_rows": info.parity_rows,
        "slice_bytes": info.slice_bytes,
        "sets": info.sets,
        "unprotected_bytes": info.unprotected_bytes,
    })
}

/// As [`recovery_json`], with the parts that are intact.
pub fn recovery_state_json(state: &RecoveryState) -> Value {
    let mut json = recovery_json(&state.info);
    json["parts"] = json!(state.frames);
    json["intact_parts"] = json!(state.intact_frames);
    json
}

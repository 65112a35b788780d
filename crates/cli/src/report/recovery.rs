//! Recovery data, for people and for scripts.

use refrain::{RecoveryInfo, RecoveryState};
use serde_json::{Value, json};

use crate::units::{bytes_text, percent_text};

/// The share that may be lost: `10.0 % of the archive`.
pub fn recovery_share_text(info: &RecoveryInfo) -> String {
    let share = percent_text(u64::from(info.share()), 10_000);
    format!("{share} of the archive")
}

/// The row of `info`.
pub fn recovery_text(info: &RecoveryInfo) -> String {
    format!(
        "{} may be lost and healed ({} of recovery data)",
        recovery_share_text(info),
        bytes_text(info.recovery_bytes)
    )
}

/// The values for scripts.
pub fn recovery_json(info: &RecoveryInfo) -> Value {
    json!({
        "protected_bytes": info.protected_bytes,
        "recovery_bytes": info.recovery_bytes,
        "data_rows": info.data_rows,
        "parity_rows": info.parity_rows,
        "slice_bytes": info.slice_bytes,
    })
}

/// As [`recovery_json`], with the parts that are intact.
pub fn recovery_state_json(state: &RecoveryState) -> Value {
    let mut json = recovery_json(&state.info);
    json["parts"] = json!(state.frames);
    json["intact_parts"] = json!(state.intact_frames);
    json
}

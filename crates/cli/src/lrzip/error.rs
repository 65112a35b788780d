//! Why a run ends before its work is done.

/// Why a run ended.
#[derive(Debug)]
pub enum Failed {
    /// This is still to be told.
    Because(String),
    /// It was told, or there is nobody to tell.
    Told,
}

impl From<crate::failure::Failure> for Failed {
    fn from(failure: crate::failure::Failure) -> Failed {
        Failed::Because(failure.to_string())
    }
}

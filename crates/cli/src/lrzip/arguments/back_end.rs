//! The back ends: the codecs of the literals.

/// The codec of the literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackEnd {
    #[default]
    Lzma,
    Bzip2,
    Gzip,
    Lzo,
    None,
    Zpaq,
}

impl BackEnd {
    /// The back end for the value of `COMPRESSIONMETHOD`.
    pub fn from_config(name: &str) -> Option<BackEnd> {
        match name.to_ascii_lowercase().as_str() {
            "lzma" => Some(BackEnd::Lzma),
            "bzip2" => Some(BackEnd::Bzip2),
            "gzip" => Some(BackEnd::Gzip),
            "lzo" => Some(BackEnd::Lzo),
            "rzip" => Some(BackEnd::None),
            "zpaq" => Some(BackEnd::Zpaq),
            _ => None,
        }
    }
}

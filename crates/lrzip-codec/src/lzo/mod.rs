//! LZO1X, in both directions.

pub(crate) mod decode;
pub(crate) mod encode;

#[cfg(test)]
mod tests;

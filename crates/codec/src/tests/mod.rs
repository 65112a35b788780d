//! Tests of whole blocks.

mod blocks;
mod bwt_blocks;
mod filters;
mod plugin_filters;

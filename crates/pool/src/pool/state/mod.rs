//! What the threads of a pool share, and what each worker owns: types and their invariants, without
//! decisions about what runs next.

pub(crate) mod context;
pub(crate) mod current;
pub(crate) mod domain;
pub(crate) mod flow_group;
pub(crate) mod idle_set;
pub(crate) mod lock_owner;
pub(crate) mod requests;
pub(crate) mod spares;
pub(crate) mod turn_limit;
pub(crate) mod view;
pub(crate) mod worker_status;

//! Caches that exist: requests to them and their replies, as bytes.
//!
//! | file | what |
//! |---|---|
//! | `memcached` | memcached's meta protocol |
//! | `redis` | the protocol of Redis and Valkey |
//! | `reply` | replies, put together from what arrives |

mod memcached;
mod redis;
mod reply;

pub use reply::{BadReply, Reply, ReplyParser};

/// How long a promise to supply a value holds, in seconds.
const PROMISE_SECONDS: u32 = 3;

/// A cache that exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Engine {
    /// memcached, 1.6 or later.
    #[default]
    Memcached,
    /// Redis 7 or later, or Valkey: single servers, not a cluster.
    Redis,
}

impl Engine {
    /// Where it listens unless told otherwise.
    #[must_use]
    pub fn port(self) -> u16 {
        match self {
            Engine::Memcached => 11211,
            Engine::Redis => 6379,
        }
    }

    /// Asks for a value.
    #[must_use]
    pub fn get(self, name: &str) -> Vec<u8> {
        match self {
            Engine::Memcached => memcached::get(name),
            Engine::Redis => redis::get(name),
        }
    }

    /// Asks for a value, and promises to supply it if nobody else did.
    #[must_use]
    pub fn get_or_promise(self, name: &str) -> Vec<u8> {
        match self {
            Engine::Memcached => memcached::get_or_promise(name, PROMISE_SECONDS),
            Engine::Redis => redis::get_or_promise(name, PROMISE_SECONDS),
        }
    }

    /// Stores a value.
    #[must_use]
    pub fn set(self, name: &str, value: &[u8]) -> Vec<u8> {
        match self {
            Engine::Memcached => memcached::set(name, value),
            Engine::Redis => redis::set(name, value),
        }
    }

    /// Puts together one of its replies.
    #[must_use]
    pub fn parser(self) -> ReplyParser {
        ReplyParser::of(match self {
            Engine::Memcached => memcached::line,
            Engine::Redis => redis::line,
        })
    }
}

//! Objects on HTTP servers and in S3-compatible stores, read by ranges, and written to stores.
//!
//! A [`RemoteSource`] is a [`Source`](crate::Source) over an object on a server. The object stays
//! the same while the source is open: the first response pins its ETag, modification time and
//! length, and a replaced object is an error, never mixed bytes. Requests are whole pages, kept for
//! a while and shared by all readers; sequential passes are read ahead. Reads block their thread as
//! long as they make progress.
//!
//! | file | contents |
//! |---|---|
//! | `location` | [`Location`]: which object, by which credentials, under which name in messages |
//! | `bucket` | the URLs of objects in an S3-compatible store |
//! | `signature` | [`S3Credentials`], and signatures of requests to such a store |
//! | `options` | [`RemoteOptions`]: deadlines, memory, certificates |
//! | `identity` | what distinguishes an object from the one that replaces it |
//! | `content_range` | the header Content-Range |
//! | `response_head` | heads of responses as the HTTP client takes them |
//! | `head` | what the head of a response says about the request |
//! | `request_failure` | why a request failed, and whether to repeat it |
//! | `client` | the HTTP client: connections, deadlines, certificates |
//! | `origin` | one request: headers, redirections, the body |
//! | `link` | how fast the server is, and how many requests it gets at once |
//! | `retry` | how often and how late a request is repeated |
//! | `attempts` | what all requests to an object or store have in common: when they are repeated |
//! | `fetcher` | one range, by as many requests as it takes |
//! | `objects` | one object, or several one behind the other |
//! | `runs` | the pages that were fetched or are on their way |
//! | `spill` | pages for which memory has no room, in a temporary file |
//! | `streams` | which reads follow each other |
//! | `source` | [`RemoteSource`] |
//! | `store`, `listing` | other requests to a store, and what it answers |
//! | `upload`, `sent_part` | an object that is written, in parts if it is large |
//! | `bucket_folder` | [`BucketFolder`]: volumes below a prefix of a bucket |
//! | `http_folder` | [`HttpFolder`]: volumes below a URL, to be read |

mod attempts;
mod bucket;
mod bucket_folder;
mod client;
mod content_range;
mod fetcher;
mod head;
mod http_folder;
mod identity;
mod link;
mod listing;
mod location;
mod objects;
mod options;
mod origin;
mod request_failure;
mod response_head;
mod retry;
mod runs;
mod sent_part;
mod signature;
mod source;
mod spill;
mod store;
mod streams;
mod upload;

pub use bucket_folder::BucketFolder;
pub use fetcher::RemoteStatistics;
pub use http_folder::HttpFolder;
pub use location::{Location, S3Options};
pub use options::RemoteOptions;
pub use signature::S3Credentials;
pub use source::RemoteSource;

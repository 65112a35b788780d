//! Which crate may depend on which, and the groups of crates to which rules apply.

/// The packages of this workspace on which a crate may depend (by directory; the engine's is
/// `refrain`).
pub const LAYERS: &[(&str, &[&str])] = &[
    ("longmatch", &[]),
    ("codec", &[]),
    ("carried", &[]),
    ("lrzip-codec", &["codec"]),
    ("plugin", &["codec", "sync"]),
    ("foreign", &[]),
    ("protect", &[]),
    ("entries", &[]),
    ("format", &["protect", "entries"]),
    ("filesystem", &["entries", "pool", "storage", "sync"]),
    ("policy", &[]),
    ("sync", &["trace"]),
    ("timer", &["sync"]),
    ("trace", &[]),
    ("simulator", &["policy", "cache"]),
    ("pool", &["policy", "sync", "timer", "trace"]),
    ("storage", &["pool", "sync"]),
    ("cache", &["pool", "protect", "storage", "sync"]),
    (
        "refrain",
        &[
            "longmatch",
            "codec",
            "carried",
            "lrzip-codec",
            "foreign",
            "protect",
            "format",
            "entries",
            "filesystem",
            "policy",
            "sync",
            "trace",
            "pool",
            "storage",
        ],
    ),
    ("page", &[]),
    ("sampler", &[]),
    (
        "server",
        &[
            "refrain", "cache", "page", "policy", "pool", "storage", "sync",
        ],
    ),
    (
        "lab",
        &["page", "pool", "policy", "sync", "timer", "storage"],
    ),
    (
        "cli",
        &[
            "refrain",
            "server",
            "cache",
            "page",
            "lab",
            "sampler",
            "plugin",
            "policy",
            "pool",
            "simulator",
            "storage",
            "sync",
            "trace",
        ],
    ),
    ("capi", &["refrain", "pool", "storage", "sync"]),
    ("python", &["refrain", "policy", "pool", "storage", "sync"]),
    ("testkit", &["format", "entries"]),
    (
        "bench",
        &[
            "refrain",
            "codec",
            "format",
            "pool",
            "policy",
            "sync",
            "timer",
            "simulator",
        ],
    ),
];

/// The crate on which only tests may depend.
pub const DEVELOPMENT_ONLY: &str = "testkit";

/// Crates that are not published. The rules about forbidden words do not apply to them: tests and
/// measurements need clocks and threads.
pub const NOT_PUBLISHED: &[&str] = &[DEVELOPMENT_ONLY, "bench"];

/// Crates of pure functions: bytes in, bytes out.
pub const BYTES_LAYER: &[&str] = &[
    "longmatch",
    "codec",
    "carried",
    "lrzip-codec",
    "foreign",
    "protect",
    "entries",
    "format",
];

/// Crates that use locks of the operating system and read its clocks.
pub const USES_THE_SYSTEM: &[&str] = &["pool", "sync", "timer", "trace", "sampler"];

/// Further dependencies of tests: crate, package.
pub const SEEN_BY_TESTS: &[(&str, &str)] = &[
    // Modules decode what codecs encode.
    ("carried", "codec"),
    // An archive with a codec of nobody is made frame by frame.
    ("cli", "format"),
];

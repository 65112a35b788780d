//! Which crate may depend on which, and the groups of crates to which rules apply.

/// The packages of this workspace on which a crate may depend (by directory; the engine's is
/// `refrain`).
pub const LAYERS: &[(&str, &[&str])] = &[
    ("longmatch", &[]),
    ("codec", &[]),
    ("lrzip-codec", &["codec"]),
    ("foreign", &[]),
    ("protect", &[]),
    ("format", &["protect", "tree"]),
    ("tree", &["pool", "storage", "timer"]),
    ("policy", &[]),
    ("timer", &["trace"]),
    ("trace", &[]),
    ("simulator", &["policy"]),
    ("pool", &["policy", "timer", "trace"]),
    ("storage", &["pool", "timer"]),
    (
        "refrain",
        &[
            "longmatch",
            "codec",
            "lrzip-codec",
            "foreign",
            "protect",
            "format",
            "tree",
            "policy",
            "timer",
            "trace",
            "pool",
            "storage",
        ],
    ),
    ("page", &[]),
    ("sampler", &[]),
    ("server", &["refrain", "page", "pool", "timer"]),
    ("lab", &["page", "pool", "policy", "timer", "storage"]),
    ("cli", &["refrain", "server", "page", "lab", "sampler"]),
    ("capi", &["refrain"]),
    ("python", &["refrain"]),
    ("testkit", &["format", "tree"]),
    (
        "bench",
        &[
            "refrain",
            "codec",
            "format",
            "pool",
            "policy",
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
    "lrzip-codec",
    "foreign",
    "protect",
    "format",
];

/// Crates that use locks of the operating system and read its clocks.
pub const USES_THE_SYSTEM: &[&str] = &["pool", "timer", "trace", "sampler"];

/// Further dependencies of tests: crate, package.
pub const SEEN_BY_TESTS: &[(&str, &str)] = &[
    // The pool's tests repeat its decisions with the simulator's policy.
    ("pool", "simulator"),
    // A test of what a trace says makes workers wait for a lock.
    ("cli", "pool"),
];

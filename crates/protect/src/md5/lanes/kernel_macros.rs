//! The code that the kernels of all processors share. It consists of macros, because functions that
//! require processor features cannot be passed as values.
//!
//! `unsafe` is written here and compiled where the macros are used. Those files state the reasons.

/// Methods of [`Word`](super::super::rounds::Word) for `$vector`, a tuple of one register that
/// exists only where its instructions do.
macro_rules! word_methods {
    ($vector:ident: $($name:ident($this:ident $(, $argument:ident)*) = $value:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $($argument: Self),*) -> Self {
            let $this = self;
            // SAFETY: the vector exists only where its instructions do.
            $vector(unsafe { $value })
        }
    )*};
}

/// Defines the kernels `$one`, for the lanes of one register, and `$two`, for the lanes of two.
/// They use `LANES`, `load`, `store` and `transposed` of the file, which require `$feature`.
/// `$is_available` states whether the processor has it.
macro_rules! kernels {
    ($one:ident, $two:ident, if $is_available:expr $(, $feature:meta)?) => {
        pub(super) fn $one(
            states: &mut LaneStates<LANES>,
            inputs: [&[Block]; LANES],
            count: usize,
        ) {
            assert!($is_available && inputs.iter().all(|blocks| blocks.len() >= count));
            // SAFETY: the feature is available, and each input has `count` blocks.
            unsafe { compress_one(states, &inputs.map(<[Block]>::as_ptr), count) }
        }

        pub(super) fn $two(
            states: &mut LaneStates<{ 2 * LANES }>,
            inputs: [&[Block]; 2 * LANES],
            count: usize,
        ) {
            assert!($is_available && inputs.iter().all(|blocks| blocks.len() >= count));
            // SAFETY: the feature is available, and each input has `count` blocks.
            unsafe { compress_two(states, &inputs.map(<[Block]>::as_ptr), count) }
        }

        /// # Safety
        /// The feature is available, and each of `inputs` points to `count` blocks.
        $(#[$feature])?
        unsafe fn compress_one(
            states: &mut LaneStates<LANES>,
            inputs: &[*const Block; LANES],
            count: usize,
        ) {
            let addends = hidden_addends();
            let mut state = states.each_ref().map(|words| load(words));
            for index in 0..count {
                // SAFETY: there are `count` blocks.
                let words = unsafe { transposed(inputs, index) };
                state = compress(state, &words, addends);
            }
            for (words, vector) in states.iter_mut().zip(state) {
                store(vector, words);
            }
        }

        /// # Safety
        /// The feature is available, and each of `inputs` points to `count` blocks.
        $(#[$feature])?
        unsafe fn compress_two(
            states: &mut LaneStates<{ 2 * LANES }>,
            inputs: &[*const Block; 2 * LANES],
            count: usize,
        ) {
            let addends = hidden_addends();
            let (halves, _) = inputs.as_chunks();
            let mut state = states.each_ref().map(|words| {
                let (halves, _) = words.as_chunks();
                Pair(load(&halves[0]), load(&halves[1]))
            });
            for index in 0..count {
                // SAFETY: there are `count` blocks.
                let low = unsafe { transposed(&halves[0], index) };
                // SAFETY: as before.
                let high = unsafe { transposed(&halves[1], index) };
                let words = std::array::from_fn(|word| Pair(low[word], high[word]));
                state = compress(state, &words, addends);
            }
            for (words, vectors) in states.iter_mut().zip(state) {
                let (halves, _) = words.as_chunks_mut();
                store(vectors.0, &mut halves[0]);
                store(vectors.1, &mut halves[1]);
            }
        }
    };
}

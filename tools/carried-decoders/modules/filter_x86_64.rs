//! Filter 4.

refrain_carried_decoders::filter!(4);

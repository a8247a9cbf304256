//! What a program inside must not be able to do.

//! `docs/configuration.md` stays true.

//! What signoff's tests share.

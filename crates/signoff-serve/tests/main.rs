//! The tests of the web page and its server.

mod page;
mod web;

//! The binary as its users meet it: what it prints, what it writes, how it fails.
//!
//! Every test runs the real program in a folder of its own. What a person reads is compared with the files in
//! `snapshots/`; a difference fails the test. After a change that is meant, `INSTA_UPDATE=always cargo test -p genus-cli`
//! writes them anew, and the difference is then read in the commit.

mod assign;
mod bad_files;
mod bad_tasks;
mod bench;
mod bulk;
mod calibrate;
mod collection;
mod demo;
mod determinism;
mod discover;
mod formats;
mod help;
mod images;
mod licences;
mod mistakes;
mod newcomer;
mod next_steps;
mod paper;
mod pipes;
mod report;
mod safety;
mod support;
mod tables;
mod train;
mod two_step;
mod unwritable;

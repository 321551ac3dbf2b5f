//! Tests of the source parser.

use std::fs;

use signoff_testkit::source_code::{ItemVisibility, source_files};

#[test]
fn the_parser_finds_tuples_and_types_of_every_kind() {
    let directory = tempfile::tempdir().unwrap();
    let text = "pub(crate) struct A; enum B { C } pub trait D { fn d(&self, one: (u8, u8)); } pub type E = F;\n\
                type F = (u8, u8); pub(super) union G { one: u8 }\n\
                fn slice(pairs: &[(u8, u8)], map: Vec<(u8, u8)>, unit: ()) {}\n\
                fn reference(pair: &(u8, u8)) {}\n\
                fn option(pair: Option<&(u8, u8)>) {}\n\
                fn result(pair: Result<u8, (u8, u8)>) {}\n\
                fn boxed(pair: Box<(u8, u8)>, other: impl Into<(u8, u8)>) {}\n\
                fn alias(pair: &E, other: Option<F>) {}\n";
    fs::create_dir_all(directory.path().join("crates/one/src")).unwrap();
    fs::write(directory.path().join("crates/one/src/wired.rs"), text).unwrap();
    let file = source_files(directory.path()).remove(0);
    assert!(file.is_product() && !file.is_wire());
    let functions: Vec<_> = file.functions.iter().map(|one| (one.name.as_str(), one.tuple_parameters)).collect();
    let expected = [("d", 1), ("slice", 0), ("reference", 1), ("option", 1), ("result", 1), ("boxed", 2), ("alias", 2)];
    assert_eq!(functions, expected);
    assert_eq!(file.functions[0].parameters, 2, "`self` counts");
    let names: Vec<_> = file.types.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, ["A", "B", "D", "E", "F", "G"]);
    let private: Vec<_> = file.types.iter().filter(|item| item.visibility == ItemVisibility::Private).collect();
    assert_eq!(private.len(), 2, "{private:?}");
}

#[test]
fn the_parser_finds_types_that_macros_declare() {
    let directory = tempfile::tempdir().unwrap();
    let rules = "macro_rules! pairs {\n\
                 ($($(#[$about:meta])* $name:ident, $other:ident, $text:literal $(, $more:expr)?;)*) => { $(\n\
                     $(#[$about])* pub struct $name(u8); enum $other { One }\n\
                 )* };\n\
                 }\n\
                 macro_rules! one { ($more:literal, $name:ident) => { pub(crate) enum $name {} }; }\n\
                 macro_rules! none { ($name:ident) => { impl $name {} }; }\n";
    let uses = "super::pairs! {\n/// About it.\nA, B, \"text\", |one, two| one;\n#[expect(unused)]\nC, D, \"text\";\n}\n\
                one!(\"text\", E);\nnone!(F);\n\
                #[derive(strum::EnumDiscriminants)]\n\
                #[strum_discriminants(derive(Debug), name(H), doc = \"text\")]\npub enum G { One(u8) }\n";
    fs::create_dir_all(directory.path().join("crates/one/src")).unwrap();
    fs::write(directory.path().join("crates/one/src/rules.rs"), rules).unwrap();
    fs::write(directory.path().join("crates/one/src/uses.rs"), uses).unwrap();
    let files = source_files(directory.path());
    let mut found: Vec<_> = files
        .iter()
        .flat_map(|file| &file.types)
        .map(|item| (item.name.as_str(), item.line, item.visibility))
        .collect();
    found.sort_by_key(|(name, ..)| *name);
    use ItemVisibility::{Private, Public, Restricted};
    let expected = [
        ("A", 3, Public),
        ("B", 3, Private),
        ("C", 5, Public),
        ("D", 5, Private),
        ("E", 7, Restricted),
        ("G", 11, Public),
        ("H", 10, Public),
    ];
    assert_eq!(found, expected);
}

//! The workspace's own Rust files, as the rules of the house see them: code lines, functions, types, comments, strings.

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

/// One parsed Rust file.
#[derive(Debug)]
pub struct SourceFile {
    /// Relative to the workspace, with `/`.
    pub path: String,
    /// Lines that hold code outside of `#[cfg(test)]` modules: neither blank nor only a comment.
    pub code_lines: usize,
    pub functions: Vec<FunctionItem>,
    pub types: Vec<TypeItem>,
    pub comments: Vec<SourceText>,
    pub strings: Vec<SourceText>,
    pub has_module_doc: bool,
}

#[derive(Debug)]
pub struct FunctionItem {
    pub name: String,
    /// From `fn` to the closing brace.
    pub lines: RangeInclusive<usize>,
    /// Without `self`.
    pub parameters: usize,
    pub tuple_parameters: usize,
}

/// A struct, enum, union, trait or type alias that is named at the level of a module.
#[derive(Debug)]
pub struct TypeItem {
    pub name: String,
    pub line: usize,
    pub visibility: ItemVisibility,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemVisibility {
    Public,
    /// `pub(crate)`, `pub(super)` and `pub(in …)`.
    Restricted,
    Private,
}

/// A comment or a string literal, and the line it starts at.
#[derive(Debug)]
pub struct SourceText {
    pub line: usize,
    pub text: String,
}

impl SourceFile {
    /// Whether it is part of the program and not of its tests, benchmarks or examples.
    pub fn is_product(&self) -> bool {
        self.path.contains("/src/") && !self.path.starts_with("crates/signoff-testkit/")
    }

    pub fn parse(path: String, text: &str) -> syn::Result<Self> {
        let tokens: TokenStream = text.parse()?;
        let mut scan =
            TokenScan { text, code: BTreeSet::new(), strings: Vec::new(), covered: Vec::new(), doc: Vec::new() };
        scan.tokens(tokens);
        let mut items = ItemVisitor::default();
        items.visit_file(&syn::parse_file(text)?);
        let is_code = |line: &&usize| !items.tests.iter().any(|lines| lines.contains(line));
        let has_module_doc = text.lines().next().is_some_and(|line| line.starts_with("//!"));
        Ok(Self {
            path,
            code_lines: scan.code.iter().filter(is_code).count(),
            comments: scan.comments(),
            strings: scan.strings,
            functions: items.functions,
            types: items.types,
            has_module_doc,
        })
    }
}

/// Parses every Rust file below `crates/` of the workspace.
///
/// # Panics
/// If a file cannot be read or parsed.
pub fn workspace_files() -> Vec<SourceFile> {
    source_files(&workspace_root())
}

/// Parses every Rust file below `crates/` of a checkout.
///
/// # Panics
/// If a file cannot be read or parsed.
pub fn source_files(root: &Path) -> Vec<SourceFile> {
    let mut paths = Vec::new();
    rust_files(&root.join("crates"), &mut paths);
    paths.sort();
    let parse = |path: &PathBuf| {
        let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"));
        SourceFile::parse(name.clone(), &text).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    paths.iter().map(parse).collect()
}

/// The root of the workspace.
pub fn workspace_root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    crates.map(Path::to_owned).nth(2).unwrap_or_default()
}

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("testdata") && !path.ends_with("target") {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Sorts the bytes of a file into code, strings and documentation; the rest is blank or a comment.
struct TokenScan<'a> {
    text: &'a str,
    code: BTreeSet<usize>,
    strings: Vec<SourceText>,
    /// The byte ranges of all tokens, in order.
    covered: Vec<(usize, usize)>,
    doc: Vec<SourceText>,
}

impl TokenScan<'_> {
    fn tokens(&mut self, tokens: TokenStream) {
        let mut documented = None;
        for token in tokens {
            let start = token.span().byte_range().start;
            let is_doc = self.text[start..].starts_with("//") || self.text[start..].starts_with("/*");
            match token {
                _ if is_doc => {
                    if documented != Some(start) {
                        self.documentation(token.span());
                    }
                    documented = Some(start);
                }
                TokenTree::Group(group) if group.delimiter() != Delimiter::None => {
                    self.code(group.span_open());
                    self.tokens(group.stream());
                    self.code(group.span_close());
                }
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    let source = literal.to_string();
                    if source.contains('"') {
                        self.strings.push(SourceText { line: literal.span().start().line, text: source });
                    }
                    self.code(literal.span());
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => self.code(token.span()),
            }
        }
    }

    fn documentation(&mut self, span: Span) {
        let range = span.byte_range();
        self.doc.push(SourceText { line: span.start().line, text: self.text[range.clone()].to_owned() });
        self.covered.push((range.start, range.end));
    }

    fn code(&mut self, span: Span) {
        let range = span.byte_range();
        self.covered.push((range.start, range.end));
        self.code.extend(span.start().line..=span.end().line);
    }

    fn comments(&self) -> Vec<SourceText> {
        let mut found: Vec<_> =
            self.doc.iter().map(|doc| SourceText { line: doc.line, text: doc.text.clone() }).collect();
        let mut end = 0;
        for (start, after) in self.covered.iter().copied().chain([(self.text.len(), self.text.len())]) {
            if start > end && !self.text[end..start].trim().is_empty() {
                let line = self.text[..end].matches('\n').count() + 1;
                found.push(SourceText { line, text: self.text[end..start].to_owned() });
            }
            end = end.max(after);
        }
        found
    }
}

#[derive(Default)]
struct ItemVisitor {
    functions: Vec<FunctionItem>,
    types: Vec<TypeItem>,
    /// The lines of `#[cfg(test)]` modules.
    tests: Vec<RangeInclusive<usize>>,
}

impl ItemVisitor {
    fn function(&mut self, signature: &syn::Signature, whole: Span) {
        let typed = signature.inputs.iter().filter_map(|input| match input {
            syn::FnArg::Typed(typed) => Some(&*typed.ty),
            syn::FnArg::Receiver(_) => None,
        });
        let types: Vec<_> = typed.collect();
        self.functions.push(FunctionItem {
            name: signature.ident.to_string(),
            lines: signature.span().start().line..=whole.end().line,
            parameters: types.len(),
            tuple_parameters: types.iter().filter(|one| is_tuple(one)).count(),
        });
    }

    fn type_item(&mut self, name: &syn::Ident, visibility: &syn::Visibility) {
        let visibility = match visibility {
            syn::Visibility::Public(_) => ItemVisibility::Public,
            syn::Visibility::Restricted(_) => ItemVisibility::Restricted,
            syn::Visibility::Inherited => ItemVisibility::Private,
        };
        self.types.push(TypeItem { name: name.to_string(), line: name.span().start().line, visibility });
    }
}

fn is_tuple(one: &syn::Type) -> bool {
    if let syn::Type::Reference(reference) = one {
        return is_tuple(&reference.elem);
    }
    matches!(one, syn::Type::Tuple(tuple) if !tuple.elems.is_empty())
}

impl<'ast> Visit<'ast> for ItemVisitor {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let is_test = |attribute: &syn::Attribute| {
            attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(|name| name == "test")
        };
        if item.attrs.iter().any(is_test) {
            self.tests.push(item.span().start().line..=item.span().end().line);
        } else {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, item.span());
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, item.span());
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.function(&item.sig, item.span());
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.type_item(&item.ident, &item.vis);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.type_item(&item.ident, &item.vis);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.type_item(&item.ident, &item.vis);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.type_item(&item.ident, &item.vis);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.type_item(&item.ident, &item.vis);
    }
}

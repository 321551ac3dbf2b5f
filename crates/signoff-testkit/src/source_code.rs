//! Parses the workspace's Rust files for the style tests: code lines, functions, types, comments, strings.

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::thread;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use self::declaring_macros::{MacroDeclaration, MacroInvocation, discriminants_name};

mod declaring_macros;

/// One parsed Rust file.
#[derive(Debug)]
pub struct SourceFile {
    /// Relative to the workspace, with `/`.
    pub path: String,
    /// Lines that hold code outside of `#[cfg(test)]` modules: neither blank nor only a comment.
    pub code_lines: usize,
    pub functions: Vec<FunctionItem>,
    pub types: Vec<TypeItem>,
    macro_declarations: Vec<MacroDeclaration>,
    macro_invocations: Vec<MacroInvocation>,
    pub comments: Vec<SourceText>,
    /// String literals without quotes and escapes.
    pub strings: Vec<SourceText>,
    pub identifiers: Vec<SourceText>,
    /// Whether the first line is a `//!` with text.
    pub has_module_doc: bool,
    /// Inline modules without a doc comment, except `tests`.
    pub undocumented_modules: Vec<SourceText>,
}

#[derive(Debug)]
pub struct FunctionItem {
    pub name: String,
    /// From `fn` to the closing brace.
    pub lines: RangeInclusive<usize>,
    /// With `self`.
    pub parameters: usize,
    /// Those whose type is a tuple, also behind a reference, an `Option` or a type alias of the workspace.
    pub tuple_parameters: usize,
    parameter_types: Vec<PlainType>,
}

/// A struct, enum, union, trait or type alias that is named at the level of a module.
#[derive(Debug)]
pub struct TypeItem {
    pub name: String,
    pub line: usize,
    pub visibility: ItemVisibility,
    /// The type behind an alias.
    alias_of: Vec<PlainType>,
}

/// A type without the references and containers of at most one value around it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PlainType {
    Tuple,
    /// The last segment of its path.
    Named(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemVisibility {
    Public,
    /// `pub(crate)`, `pub(super)` and `pub(in …)`.
    Restricted,
    Private,
}

/// A comment, a string literal or a name, and the line it starts at.
#[derive(Debug)]
pub struct SourceText {
    pub line: usize,
    pub text: String,
}

impl SourceFile {
    /// Whether it is the module `wire` or a part of it.
    pub fn is_wire(&self) -> bool {
        self.path.split('/').any(|name| name == "wire" || name == "wire.rs")
    }

    /// Whether it is part of the program and not of its tests, benchmarks or examples.
    pub fn is_product(&self) -> bool {
        self.path.contains("/src/") && !self.path.starts_with("crates/signoff-testkit/")
    }

    pub fn parse(path: String, text: &str) -> syn::Result<Self> {
        let tokens: TokenStream = text.parse()?;
        let mut scan = TokenScan { text, ..TokenScan::default() };
        scan.tokens(tokens.clone());
        let mut items = ItemVisitor::default();
        items.visit_file(&syn::parse2(tokens)?);
        let is_code = |line: &&usize| !items.tests.iter().any(|lines| lines.contains(line));
        let has_module_doc = text.lines().next().and_then(|line| line.strip_prefix("//!"));
        let has_module_doc = has_module_doc.is_some_and(|doc| !doc.trim().is_empty());
        Ok(Self {
            path,
            code_lines: scan.code.iter().filter(is_code).count(),
            comments: scan.comments(),
            strings: scan.strings,
            identifiers: scan.identifiers,
            functions: items.functions,
            types: items.types,
            macro_declarations: items.macro_declarations,
            macro_invocations: items.macro_invocations,
            has_module_doc,
            undocumented_modules: items.undocumented_modules,
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
    // Tokens belong to their thread: each thread returns finished files.
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut files: Vec<SourceFile> = thread::scope(|scope| {
        let parts = paths.chunks(paths.len().div_ceil(threads).max(1));
        let parts: Vec<_> = parts.map(|part| scope.spawn(|| part.iter().map(parse).collect::<Vec<_>>())).collect();
        parts.into_iter().flat_map(|part| part.join().expect("every file is parsed")).collect()
    });
    add_types_of_macros(&mut files);
    count_tuple_parameters(&mut files);
    files
}

/// Adds the types that are declared by invoking a macro, which another file may define.
fn add_types_of_macros(files: &mut [SourceFile]) {
    let declarations: Vec<MacroDeclaration> =
        files.iter_mut().flat_map(|file| std::mem::take(&mut file.macro_declarations)).collect();
    for file in files {
        for invocation in &file.macro_invocations {
            file.types.extend(declarations.iter().flat_map(|declaration| declaration.declared_types(invocation)));
        }
    }
}

/// Counts the tuple parameters of every function. A private alias is known in its own file only.
fn count_tuple_parameters(files: &mut [SourceFile]) {
    let mut tuples: BTreeSet<(Option<String>, String)> = BTreeSet::new();
    let is_tuple = |plain: &PlainType, path: &str, tuples: &BTreeSet<(Option<String>, String)>| match plain {
        PlainType::Tuple => true,
        PlainType::Named(name) => {
            [None, Some(path.to_owned())].into_iter().any(|scope| tuples.contains(&(scope, name.clone())))
        }
    };
    // An alias may name another alias: repeat until no more are found.
    let mut known = None;
    while known != Some(tuples.len()) {
        known = Some(tuples.len());
        for file in files.iter() {
            for item in &file.types {
                if item.alias_of.iter().any(|plain| is_tuple(plain, &file.path, &tuples)) {
                    let scope = (item.visibility == ItemVisibility::Private).then(|| file.path.clone());
                    tuples.insert((scope, item.name.clone()));
                }
            }
        }
    }
    for file in files {
        for function in &mut file.functions {
            let types = function.parameter_types.iter();
            function.tuple_parameters = types.filter(|plain| is_tuple(plain, &file.path, &tuples)).count();
        }
    }
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
#[derive(Default)]
struct TokenScan<'a> {
    text: &'a str,
    code: BTreeSet<usize>,
    strings: Vec<SourceText>,
    identifiers: Vec<SourceText>,
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
                    let line = literal.span().start().line;
                    self.strings.extend(string_value(&literal).map(|text| SourceText { line, text }));
                    self.code(literal.span());
                }
                TokenTree::Ident(name) => {
                    self.identifiers.push(SourceText { line: name.span().start().line, text: name.to_string() });
                    self.code(name.span());
                }
                TokenTree::Punct(punct) => self.code(punct.span()),
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

/// The value of a string literal of any kind.
fn string_value(literal: &proc_macro2::Literal) -> Option<String> {
    match syn::Lit::new(literal.clone()) {
        syn::Lit::Str(text) => Some(text.value()),
        syn::Lit::ByteStr(bytes) => Some(String::from_utf8_lossy(&bytes.value()).into_owned()),
        syn::Lit::CStr(text) => Some(text.value().to_string_lossy().into_owned()),
        syn::Lit::Byte(_)
        | syn::Lit::Char(_)
        | syn::Lit::Int(_)
        | syn::Lit::Float(_)
        | syn::Lit::Bool(_)
        | syn::Lit::Verbatim(_)
        | _ => None,
    }
}

impl ItemVisibility {
    fn from_syntax(visibility: &syn::Visibility) -> Self {
        match visibility {
            syn::Visibility::Public(_) => Self::Public,
            syn::Visibility::Restricted(_) => Self::Restricted,
            syn::Visibility::Inherited => Self::Private,
        }
    }
}

#[derive(Default)]
struct ItemVisitor {
    functions: Vec<FunctionItem>,
    types: Vec<TypeItem>,
    macro_declarations: Vec<MacroDeclaration>,
    macro_invocations: Vec<MacroInvocation>,
    undocumented_modules: Vec<SourceText>,
    /// The lines of `#[cfg(test)]` modules.
    tests: Vec<RangeInclusive<usize>>,
}

impl ItemVisitor {
    fn function(&mut self, signature: &syn::Signature, whole: Span) {
        let typed = signature.inputs.iter().filter_map(|input| match input {
            syn::FnArg::Typed(typed) => Some(&*typed.ty),
            syn::FnArg::Receiver(_) => None,
        });
        self.functions.push(FunctionItem {
            name: signature.ident.to_string(),
            lines: signature.span().start().line..=whole.end().line,
            parameters: signature.inputs.len(),
            tuple_parameters: 0,
            parameter_types: typed.filter_map(plain_type).collect(),
        });
    }

    fn type_item(&mut self, name: &syn::Ident, visibility: &syn::Visibility, alias_of: Vec<PlainType>) {
        let visibility = ItemVisibility::from_syntax(visibility);
        self.types.push(TypeItem { name: name.to_string(), line: name.span().start().line, visibility, alias_of });
    }
}

/// The type of a parameter behind references, `Option`, smart pointers and `impl Into`. A slice or an iterator of pairs
/// is none of these.
fn plain_type(one: &syn::Type) -> Option<PlainType> {
    match one {
        syn::Type::Reference(reference) => plain_type(&reference.elem),
        syn::Type::Paren(paren) => plain_type(&paren.elem),
        syn::Type::Group(group) => plain_type(&group.elem),
        syn::Type::Tuple(tuple) => (!tuple.elems.is_empty()).then_some(PlainType::Tuple),
        syn::Type::ImplTrait(bounds) => bounds.bounds.iter().find_map(converted_type),
        syn::Type::TraitObject(bounds) => bounds.bounds.iter().find_map(converted_type),
        syn::Type::Path(path) => {
            let segment = path.path.segments.last()?;
            match segment.ident.to_string().as_str() {
                "Option" | "Result" | "Box" | "Rc" | "Arc" | "Cow" => {
                    type_arguments(segment).filter_map(plain_type).max_by_key(|plain| *plain == PlainType::Tuple)
                }
                name => Some(PlainType::Named(name.to_owned())),
            }
        }
        syn::Type::Array(_)
        | syn::Type::FnPtr(_)
        | syn::Type::Infer(_)
        | syn::Type::Macro(_)
        | syn::Type::Never(_)
        | syn::Type::Ptr(_)
        | syn::Type::Slice(_)
        | syn::Type::Verbatim(_)
        | _ => None,
    }
}

/// What `impl Into<T>` and its relatives accept.
fn converted_type(bound: &syn::TypeParamBound) -> Option<PlainType> {
    let syn::TypeParamBound::Trait(bound) = bound else { return None };
    let segment = bound.path.segments.last()?;
    let converts = ["Into", "TryInto", "AsRef", "Borrow"].iter().any(|name| segment.ident == name);
    if converts { type_arguments(segment).find_map(plain_type) } else { None }
}

fn type_arguments(segment: &syn::PathSegment) -> impl Iterator<Item = &syn::Type> {
    let arguments = match &segment.arguments {
        syn::PathArguments::AngleBracketed(angled) => Some(angled.args.iter()),
        syn::PathArguments::None | syn::PathArguments::Parenthesized(_) => None,
    };
    arguments.into_iter().flatten().filter_map(|argument| match argument {
        syn::GenericArgument::Type(given) => Some(given),
        syn::GenericArgument::Lifetime(_)
        | syn::GenericArgument::Const(_)
        | syn::GenericArgument::AssocType(_)
        | syn::GenericArgument::AssocConst(_)
        | syn::GenericArgument::Constraint(_)
        | _ => None,
    })
}

/// Whether an attribute is a doc comment with text.
fn has_documentation(attribute: &syn::Attribute) -> bool {
    let Ok(pair) = attribute.meta.require_name_value() else { return false };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else { return false };
    pair.path.is_ident("doc") && !text.value().trim().is_empty()
}

impl<'ast> Visit<'ast> for ItemVisitor {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let is_test = |attribute: &syn::Attribute| {
            attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(|name| name == "test")
        };
        let is_documented = item.attrs.iter().any(has_documentation);
        if item.content.is_some() && item.ident != "tests" && !is_documented {
            let line = item.ident.span().start().line;
            self.undocumented_modules.push(SourceText { line, text: item.ident.to_string() });
        }
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
        self.type_item(&item.ident, &item.vis, Vec::new());
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.type_item(&item.ident, &item.vis, Vec::new());
        if let Some(name) = item.attrs.iter().find_map(discriminants_name) {
            self.type_item(&name, &item.vis, Vec::new());
        }
        visit::visit_item_enum(self, item);
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        let tokens = item.mac.tokens.clone();
        match (&item.ident, item.mac.path.segments.last()) {
            (Some(name), _) => self.macro_declarations.extend(MacroDeclaration::all(name, tokens)),
            (None, Some(segment)) => {
                self.macro_invocations.push(MacroInvocation::new(&segment.ident, tokens));
            }
            (None, None) => {}
        }
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.type_item(&item.ident, &item.vis, Vec::new());
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.type_item(&item.ident, &item.vis, Vec::new());
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.type_item(&item.ident, &item.vis, plain_type(&item.ty).into_iter().collect());
    }
}

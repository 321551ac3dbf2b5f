//! Types that a macro of the workspace declares: `struct $name` in its body, with the name in each invocation.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

use super::{ItemVisibility, SourceText, TypeItem};

/// One `struct $name` or `enum $name` in the body of a `macro_rules!`.
#[derive(Debug)]
pub(super) struct MacroDeclaration {
    /// The name of the macro.
    macro_name: String,
    visibility: ItemVisibility,
    /// The number of commas before the name in each of the macro's entries, which end with `;`.
    position: usize,
}

/// One use of a macro at the level of a module.
#[derive(Debug)]
pub(super) struct MacroInvocation {
    macro_name: String,
    /// The first name in each piece between commas, of each entry that ends with `;`.
    entries: Vec<Vec<Option<SourceText>>>,
}

impl MacroInvocation {
    pub(super) fn new(macro_name: &Ident, tokens: TokenStream) -> Self {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let entries = tokens.split(|token| is_punct(token, ';')).map(|entry| {
            // An attribute is `#` and a group.
            let names = entry.split(|token| is_punct(token, ',')).map(|piece| piece.iter().find_map(ident));
            let text = |name: Ident| SourceText { line: name.span().start().line, text: name.to_string() };
            names.map(|name| name.map(text)).collect()
        });
        Self { macro_name: macro_name.to_string(), entries: entries.collect() }
    }
}

impl MacroDeclaration {
    /// The declarations of a `macro_rules!` with these rules.
    pub(super) fn all(macro_name: &Ident, rules: TokenStream) -> Vec<Self> {
        let groups: Vec<TokenStream> = rules.into_iter().filter_map(group_stream).collect();
        let mut found = Vec::new();
        // Each rule is a matcher and a body.
        for (matcher, body) in groups.iter().zip(groups.iter().skip(1)).step_by(2) {
            for (variable, visibility) in declared_variables(body) {
                if let Some(position) = position_of(&variable, matcher) {
                    found.push(Self { macro_name: macro_name.to_string(), visibility, position });
                }
            }
        }
        found
    }

    /// The types that an invocation declares by this declaration.
    pub(super) fn declared_types(&self, invocation: &MacroInvocation) -> impl Iterator<Item = TypeItem> {
        let entries = invocation.entries.iter().filter(|_| invocation.macro_name == self.macro_name);
        entries.filter_map(|entry| entry.get(self.position)?.as_ref()).map(|name| TypeItem {
            name: name.text.clone(),
            line: name.line,
            visibility: self.visibility,
            alias_of: Vec::new(),
        })
    }
}

/// The variables after `struct` or `enum` in the body of a macro.
fn declared_variables(body: &TokenStream) -> Vec<(String, ItemVisibility)> {
    let tokens: Vec<TokenTree> = body.clone().into_iter().collect();
    let mut found: Vec<_> =
        tokens.iter().cloned().filter_map(group_stream).flat_map(|inner| declared_variables(&inner)).collect();
    for (index, window) in tokens.windows(3).enumerate() {
        let declares = ident(&window[0]).is_some_and(|word| word == "struct" || word == "enum");
        if let (true, true, Some(variable)) = (declares, is_punct(&window[1], '$'), ident(&window[2])) {
            found.push((variable.to_string(), visibility_before(&tokens[..index])));
        }
    }
    found
}

fn visibility_before(tokens: &[TokenTree]) -> ItemVisibility {
    let is_pub = |token: &TokenTree| ident(token).is_some_and(|word| word == "pub");
    match tokens {
        [.., last] if is_pub(last) => ItemVisibility::Public,
        [.., keyword, TokenTree::Group(_)] if is_pub(keyword) => ItemVisibility::Restricted,
        _ => ItemVisibility::Private,
    }
}

/// The number of commas before `$variable` in the group of a matcher that holds it.
fn position_of(variable: &str, matcher: &TokenStream) -> Option<usize> {
    let tokens: Vec<TokenTree> = matcher.clone().into_iter().collect();
    let here = tokens
        .windows(2)
        .position(|pair| is_punct(&pair[0], '$') && ident(&pair[1]).is_some_and(|name| name == variable));
    match here {
        Some(end) => Some(tokens[..end].iter().filter(|token| is_punct(token, ',')).count()),
        None => tokens.into_iter().filter_map(group_stream).find_map(|inner| position_of(variable, &inner)),
    }
}

/// The type that `strum` declares beside an enum with `#[strum_discriminants(name(NAME))]`.
pub(super) fn discriminants_name(attribute: &syn::Attribute) -> Option<Ident> {
    if !attribute.path().is_ident("strum_discriminants") {
        return None;
    }
    let tokens: Vec<TokenTree> = attribute.meta.require_list().ok()?.tokens.clone().into_iter().collect();
    tokens.windows(2).find_map(|pair| match pair {
        [TokenTree::Ident(key), TokenTree::Group(group)] if key == "name" => {
            group.stream().into_iter().find_map(|token| ident(&token))
        }
        _ => None,
    })
}

fn group_stream(token: TokenTree) -> Option<TokenStream> {
    match token {
        TokenTree::Group(group) if group.delimiter() != Delimiter::None => Some(group.stream()),
        TokenTree::Group(_) | TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    }
}

fn ident(token: &TokenTree) -> Option<Ident> {
    match token {
        TokenTree::Ident(name) => Some(name.clone()),
        TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    }
}

fn is_punct(token: &TokenTree, char: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == char)
}

"""The scanner: tokens, brackets, places, edits."""

from __future__ import annotations

import pytest

from inferspec.tools.metalsim.declarations import Declaration, declarations
from inferspec.tools.metalsim.source import Edits, Place, Source, Unbalanced


def texts(text: str) -> list[str]:
    return [token.text for token in Source(text).tokens]


def test_comments_strings_and_directives_are_no_code() -> None:
    source = Source("a /* device { */ \"kernel }\" // (\n#define threadgroup {\\\n {\n'{' b")
    assert [(t.kind, t.text) for t in source.tokens] == [
        ("name", "a"),
        ("string", '"kernel }"'),
        ("string", "'{'"),
        ("name", "b"),
    ]


def test_a_raw_string_is_one_token() -> None:
    assert texts('x = R"d(a "quoted" ) ")d";') == ["x", "=", 'R"d(a "quoted" ) ")d"', ";"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vec<vec<T>>", ["vec", "<", "vec", "<", "T", ">", ">"]),
        ("a<<=b>>2", ["a", "<<=", "b", ">", ">", "2"]),
        ("a>=b->c::d", ["a", ">=", "b", "->", "c", "::", "d"]),
        ("1.5e-3f+0x1F'00u-.5h", ["1.5e-3f", "+", "0x1F'00u", "-", ".5h"]),
        ("f(Args&&... x)", ["f", "(", "Args", "&&", "...", "x", ")"]),
    ],
)
def test_marks_are_joined_as_the_rewriting_needs_them(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


def test_brackets_know_their_partners_across_strings() -> None:
    source = Source('f(a["]"], {b})')
    pairs = {(source.tokens[i].start, source.tokens[j].start) for i, j in source.partner.items() if i < j}
    assert pairs == {(1, 13), (3, 7), (10, 12)}


@pytest.mark.parametrize(
    ("text", "line"), [("void f() {\n  g(;\n}", 2), ("int a;\n}\n", 2), ("f(\n(\n)", 1), ("\n{\n[ } ]", 3)]
)
def test_a_bracket_without_a_counterpart_is_told_with_its_line(text: str, line: int) -> None:
    with pytest.raises(Unbalanced) as error:
        Source(text, "k.metal")
    assert error.value.place == Place("k.metal", line)


def test_places_follow_line_markers_of_both_forms() -> None:
    source = Source('a\nb\n#line 10 "k.metal"\nc\n# 3 "dir/h.h" 1 3\n\nd\n#line 7\ne\n#pragma once\nf', "first")
    assert [(t.text, str(source.place(i))) for i, t in enumerate(source.tokens)] == [
        ("a", "first:1"),
        ("b", "first:2"),
        ("c", "k.metal:10"),
        ("d", "dir/h.h:4"),
        ("e", "dir/h.h:7"),
        ("f", "dir/h.h:9"),
    ]


def test_attributes_are_not_indices() -> None:
    source = Source("x[[buffer(0)]] y[i[0]] z[ [] { return 0; }() ]")
    found = [source.words(start, end) for start, end in source.attributes(0, len(source.tokens))]
    assert found == ["[ [ buffer ( 0 ) ] ]"]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<a, b<c>> d", "d"),
        ("<(a > b), c> d", "d"),
        ("< b; c > d", "b ; c > d"),
    ],
)
def test_angle_brackets_end_where_they_close(text: str, rest: str) -> None:
    source = Source(text)
    assert source.words(source.past_angle(0), len(source.tokens)) == rest


def test_operator_less_opens_no_angle() -> None:
    source = Source("operator<(a, b)")
    assert source.past_angle(1) == 2


def test_lists_split_at_their_own_commas_only() -> None:
    source = Source("pair<a, b> x, f(c, d), e[g, h]")
    parts = [source.words(start, end) for start, end in source.split(0, len(source.tokens))]
    assert parts == ["pair < a , b > x", "f ( c , d )", "e [ g , h ]"]


def test_edits_keep_lines_and_directives() -> None:
    source = Source("a b\nc\n#line 40\nd e\nf")
    edits = Edits(source)
    edits.replace(1, 4, "X")  # b c d, over a directive
    edits.insert(5, "I ")
    edits.replace(2, 3, "lost")  # inside a piece that goes
    assert edits.apply() == "a X\n\n#line 40\n e\nI f"


def test_at_one_place_insertions_come_first_and_longer_pieces_win() -> None:
    source = Source("a b c")
    edits = Edits(source)
    edits.replace(0, 1, "short")
    edits.replace(0, 2, "long")
    edits.insert(0, "before ")
    assert edits.apply() == "before long c"


def kinds(text: str) -> list[tuple[str, str, tuple[str, ...]]]:
    source = Source(text)
    return [(d.kind, source.words(d.start, d.head), d.scope) for d in declarations(source)]


def only(text: str) -> tuple[Source, Declaration]:
    source = Source(text)
    (declaration,) = declarations(source)
    return source, declaration


def test_namespaces_and_classes_are_walked_into() -> None:
    found = kinds("namespace a { struct S { int x; void f() { g(); } }; } inline namespace { int y; }")
    assert found == [
        ("namespace", "namespace a", ()),
        ("class", "struct S", ("a",)),
        ("other", "int x", ("a", "S")),
        ("function", "void f ( )", ("a", "S")),
        ("namespace", "inline namespace", ()),
        ("other", "int y", ("",)),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "template <typename T, int N = (1 > 0)> T f(T x = {}) { return x; }",
        "S::S(int a) : x{a}, y(a), z{} { go(); }",
        "bool operator>=(S a, S b) { return true; }",
        "bool operator<(S a, S b) { return true; }",
        "T operator()(int a) const { return a; }",
        "constexpr operator vec<T, 2>() const { return {}; }",
        "__attribute__((always_inline)) void f(int a) { }",
        "[[kernel]] void f(device float* x [[buffer(0)]]) { }",
        "auto f(int a) -> decltype(a) { return a; }",
    ],
)
def test_functions_are_told_by_their_parameters(text: str) -> None:
    source, declaration = only(text)
    assert declaration.kind == "function"
    assert declaration.parameters is not None
    assert declaration.body is not None
    assert declaration.end == len(source.tokens)


@pytest.mark.parametrize(
    "text",
    [
        "constant float table[2] = {1, 2};",
        "enum class E : uint { a, b };",
        "float x{3};",
        "using F = void (*)(int);",
        "constexpr int n = f(3);",
        "struct S s = {1};",
    ],
)
def test_variables_enumerations_and_aliases_are_neither_functions_nor_classes(text: str) -> None:
    source, declaration = only(text)
    assert (declaration.kind, declaration.end) == ("other", len(source.tokens))


def test_access_labels_belong_to_no_member() -> None:
    assert kinds("class C { public: int x; private: void f(); };")[1:] == [
        ("other", "int x", ("C",)),
        ("function", "void f ( )", ("C",)),
    ]


def test_a_structure_with_alignment_is_a_class() -> None:
    assert kinds("struct alignas(16) P { int x; };")[0][:2] == ("class", "struct alignas ( 16 ) P")


def test_an_explicit_instantiation_is_told_from_a_template() -> None:
    found = kinds('template [[host_name("a")]] kernel void f<float>(device float*); template <> void f<int>(int*);')
    assert [kind for kind, _, _ in found] == ["instantiation", "function"]

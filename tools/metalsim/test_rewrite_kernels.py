"""Rewriting: kernels' parameters, instantiations of templates, function constants."""

from __future__ import annotations

import pytest

from inferspec.tools.metalsim import CompileError, Refused
from inferspec.tools.metalsim.rewrite import Parameter, Rewritten, rewrite
from inferspec.tools.metalsim.source import Source


def of(text: str) -> Rewritten:
    return rewrite(Source(text, "k.metal"))


def parameters(text: str) -> tuple[Parameter, ...]:
    return of(f"kernel void k({text}) {{ }}").kernels["k"].parameters


def test_buffers_with_indices_of_their_own() -> None:
    assert parameters(
        "device float* out [[buffer(2)]], const device half* x [[ buffer(0) ]], constant uint& n [[buffer(1)]]"
    ) == (
        Parameter("buffer", "out", "float", 2, writable=True),
        Parameter("buffer", "x", "half", 0),
        Parameter("buffer", "n", "uint", 1),
    )


def test_buffers_without_get_the_lowest_free_index() -> None:
    found = parameters("device T* a, device U* b [[buffer(0)]], constant V& c, device W* d [[buffer(2)]], device X* e")
    assert [(p.name, p.index) for p in found] == [("a", 1), ("b", 0), ("c", 3), ("d", 2), ("e", 4)]


@pytest.mark.parametrize(
    ("text", "writable"),
    [
        ("device float* x", True),
        ("device const float* x", False),
        ("const device float* x", False),
        ("device float const* x", False),
        ("device float& x", True),
        ("device atomic_uint* x", True),
        ("volatile device float* x", True),
        ("device float* const x", True),
        ("constant float* x", False),
        ("constant const int64_t x[3]", False),
        ("device float x[3]", True),
    ],
)
def test_what_a_kernel_may_write(text: str, writable: bool) -> None:
    (parameter,) = parameters(text)
    assert (parameter.kind, parameter.name, parameter.writable) == ("buffer", "x", writable)


def test_threadgroup_arguments_count_for_themselves() -> None:
    found = parameters(
        "threadgroup float* a [[threadgroup(1)]], device float* b, threadgroup half* c, threadgroup vec<T, 4>& d"
    )
    assert [(p.kind, p.name, p.index) for p in found] == [
        ("threadgroup", "a", 1),
        ("buffer", "b", 0),
        ("threadgroup", "c", 0),
        ("threadgroup", "d", 2),
    ]


def test_positions_take_no_index() -> None:
    found = parameters(
        "uint3 p [[thread_position_in_grid]], device float* x, ushort lane [[thread_index_in_simdgroup]]"
    )
    assert [(p.kind, p.position, p.index) for p in found] == [
        ("position", "thread_position_in_grid", -1),
        ("buffer", "", 0),
        ("position", "thread_index_in_simdgroup", -1),
    ]


def test_an_optional_buffer_keeps_its_index() -> None:
    (a, b) = parameters("device T* a [[buffer(4), function_constant(has_a)]], device T* b")
    assert (a.index, b.index) == (4, 0)


@pytest.mark.parametrize("text", ["", "void"])
def test_a_kernel_without_parameters(text: str) -> None:
    assert parameters(text) == ()


def test_types_of_templates_hold_commas() -> None:
    (a, b) = parameters("device metal::vec<T, 4>* a, const constant array<int, 3>& b")
    assert (a.type, b.type) == ("metal :: vec < T , 4 >", "array < int , 3 >")


@pytest.mark.parametrize(
    "text",
    [
        "kernel void k(device float* x) { }",
        "[[kernel]] void k(device float* x) { }",
        "template <typename T, int N = 4> [[kernel, max_total_threads_per_threadgroup(N)]] void k(device T* x) { }",
        '[[host_name("other")]] [[kernel]] void k(device float* x) { }',
        "static inline kernel void k(device float* x) { }",
    ],
)
def test_kernels_are_told_by_word_or_attribute(text: str) -> None:
    assert list(of(text).kernels) == ["k"]


def test_functions_and_prototypes_are_no_kernels() -> None:
    assert of("void k(device float* x) { } kernel void l(device float* x);").kernels == {}


def test_kernels_in_namespaces_have_full_names() -> None:
    assert list(of("namespace a { namespace b { kernel void k() { } } }").kernels) == ["a::b::k"]


def test_an_unknown_attribute_of_a_parameter_is_refused() -> None:
    with pytest.raises(Refused, match=r"k\.metal:2: .*\[\[payload\]\]"):
        parameters("\ndevice P& p [[payload]]")


def test_a_parameter_that_is_neither_memory_nor_position_is_an_error() -> None:
    with pytest.raises(CompileError, match=r"k\.metal:1: error: kernel parameter 'n' is neither"):
        parameters("uint n")


def test_an_index_must_be_a_number() -> None:
    with pytest.raises(CompileError, match=r"\[\[buffer\(n\)\]\] takes a number"):
        parameters("device float* x [[buffer(n)]]")


TEMPLATE = (
    "template <typename T, int N> [[kernel]] void add(device T* x [[buffer(0)]], constant int& n [[buffer(1)]]) { } "
)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("template [[host_name(\"a\")]] [[kernel]] decltype(add<float, 4>) add<float, 4>;", "add < float , 4 >"),
        ('template [[host_name("a")]] kernel add_t add<float, 4>;', "add < float , 4 >"),
        ('template [[host_name("a")]] kernel m::add_t add<device float*, 4>;', "add < float * , 4 >"),
        ('template [[host_name("a")]] kernel add_t add;', "static_cast<add_t*>(add)"),
        ('template [[host_name("a")]] kernel void add<float, 4>(device float*, constant int&);', "add < float , 4 >"),
        ('template [[host_name("a")]] [[kernel]] void add<vec<T, 2>, 1>(device vec<T, 2>* x [[buffer(0)]], constant int& n);', "add < vec < T , 2 > , 1 >"),
        ('template [[ host_name("a") ]] kernel void add<device float*, 4>(device float*, constant int&);', "add < float * , 4 >"),
        ('template [[host_name("a")]] kernel void add(device float* x [[buffer(0)]], constant int& n);', "static_cast<void (*)(float * x , const int & n)>(add)"),
    ],
)  # fmt: skip
def test_instantiations_name_kernels(text: str, expression: str) -> None:
    found = of(TEMPLATE + text)
    assert found.instantiations["a"].function == "add"
    assert found.instantiations["a"].expression == expression
    assert "host_name" not in found.text
    assert found.text.rstrip().endswith("}")


def test_a_host_name_may_be_of_several_literals() -> None:
    found = of(
        TEMPLATE + 'template [[host_name("add_" "float" "_4")]] [[kernel]] decltype(add<float, 4>) add<float, 4>;'
    )
    assert list(found.instantiations) == ["add_float_4"]


def test_instantiations_in_namespaces() -> None:
    found = of(
        "namespace m { " + TEMPLATE + 'template [[host_name("a")]] [[kernel]] decltype(add<float, 4>) add<float, 4>; }'
    )
    assert found.instantiations["a"].function == "m::add"
    assert found.instantiations["a"].expression == "m::add < float , 4 >"


def test_an_instantiation_without_a_kernel_is_an_error() -> None:
    for text in ("kernel add_t;", "kernel;", "kernel add<float, 4>;"):
        with pytest.raises(
            CompileError, match=r"k\.metal:1: error: an explicit instantiation takes a type and a kernel"
        ):
            of(TEMPLATE + f'template [[host_name("a")]] {text}')


def test_instantiations_of_functions_stay() -> None:
    text = "template <typename T> T twice(T x) { return x + x; } template int twice<int>(int);"
    assert of(text).text == text


CONSTANTS = """
constant bool causal [[function_constant(3)]];
constant int width [[function_constant(0)]];
constant bool wide = causal && width > 4;
constant float unrelated = 2;
constant int twice_width = wide ? 2 * width : 0;
constant bool optional [[function_constant(9)]];
constant bool option = is_function_constant_defined(optional) ? optional : true;
int helper(int x) { return twice_width * x; }
struct Policy { static int get() { return helper(1); } };
kernel void uses(device int* out) { out[0] = Policy::get(); }
kernel void asks(device int* out) { out[0] = option; }
kernel void plain(device int* out) { out[0] = unrelated; }
kernel void reads(device int* out) { out[0] = optional; }
[[maybe_unused]] constant int four = 4;
struct Other { static int get() { return causal; } int helped() { return get(); } };
template <int N> kernel void third(device int* out) { out[0] = N + four; }
template <int N> kernel void fourth(device int* out) { out[0] = N + width; }
template [[host_name("fourth")]] [[kernel]] decltype(fourth<4>) fourth<4>;
"""


def test_function_constants_are_found_with_their_types() -> None:
    found = of(CONSTANTS).constants
    assert {index: (c.name, c.type) for index, c in found.by_index.items()} == {
        3: ("causal", "bool"),
        0: ("width", "int"),
        9: ("optional", "bool"),
    }


def test_what_is_computed_from_them_is_computed_again_in_order() -> None:
    found = of(CONSTANTS)
    assert [name for name, _ in found.constants.derived] == ["wide", "twice_width", "option"]
    setter = found.constants.setter()
    assert setter.index("wide = causal && width > 4;") < setter.index("twice_width = wide ? 2 * width : 0;")
    assert "static bool wide;" in found.text
    assert "const float unrelated = 2;" in found.text


@pytest.mark.parametrize(
    ("kernel", "needed"),
    [
        ("uses", {"causal", "width"}),
        ("asks", set()),
        ("plain", set()),
        ("reads", {"optional"}),
        ("third", set()),
        ("fourth", {"width"}),
    ],
)
def test_a_kernel_needs_the_constants_that_it_can_reach(kernel: str, needed: set[str]) -> None:
    found = of(CONSTANTS)
    assert found.needed_constants(found.kernels[kernel]) == needed


def test_an_index_is_given_once() -> None:
    with pytest.raises(CompileError, match=r"k\.metal:2: error: function constant 1 is declared twice"):
        of("constant int a [[function_constant(1)]];\nconstant int b [[function_constant(1)]];")

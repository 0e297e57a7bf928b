"""``inferspec explain``: complete for every requirement, helpful for a wrong name, and its X-ray shows the oracle's own numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest
from rich.console import Console

from inferspec.conformance.suite import all_tests
from inferspec.spec import COMPONENTS, contract, contracts
from inferspec.tools import explain, xray
from inferspec.tools.cli import main
from inferspec.tools.sources import cited, links, properties


def told(capsys, *arguments: str) -> str:
    """What ``inferspec explain`` prints, its lines unwrapped."""
    assert main(["explain", *arguments]) == 0
    return re.sub(r"\s+", " ", capsys.readouterr().out)


def test_a_requirement_is_explained_from_its_sentence_to_its_tests(capsys):
    text = told(capsys, "ROPE-07")
    rope = contract("rope")
    about = next(r for r in rope.requirements if r.id == "ROPE-07")
    for part in (about.text, "MUST · aspect value", "The oracle spec/rope.py:", "dt = t (33a + 10a·g + a)"):
        assert part in text
    for fault in (fault for fault in rope.faults if fault.kills == about):
        assert fault.text in text
        assert all(link in text for link in links(fault.source))
    for test in (test for test in all_tests() if test.requirement == about):
        assert test.name in text
    for variant in (v for v in rope.variants if v.operation == "RoPE"):
        assert variant.text in text


@pytest.mark.parametrize("name", ["rope-7", "ROPE-07", "rope-positions-in-bfloat16"])
def test_a_requirement_goes_by_its_id_and_by_its_faults(capsys, name):
    assert told(capsys, name).startswith("ROPE-07 positions, frequencies and angles are computed in float32")


@pytest.mark.parametrize(
    "where", ["", "test_rope.py::", "conformance/test_rope.py::", "inferspec.conformance.test_rope::"]
)
def test_a_requirement_goes_by_its_tests_as_pytest_names_them(capsys, where):
    assert told(capsys, f"{where}test_far_positions_are_right_in_every_dtype").startswith(
        "ROPE-07 positions, frequencies"
    )


def test_a_test_s_file_tells_it_from_others_of_its_name(capsys):
    several = "test_dozens_of_heads_read_their_own_keys_and_values"
    ids = {test.file: test.requirement.id for test in all_tests() if test.name == several}
    assert len(ids) > 1
    assert all(told(capsys, f"{file}::{several}").startswith(id) for file, id in ids.items())
    text = told(capsys, several)
    assert all(f"requirement(id='{id}')" in text for id in ids.values())
    assert main(["explain", f"test_rope.py::{several}"]) == 2


def test_a_requirement_s_tests_are_run_from_anywhere(capsys, tmp_path, monkeypatch):
    assert "pytest conformance --impl" in told(capsys, "ROPE-07")
    monkeypatch.chdir(tmp_path)
    assert "pytest --pyargs inferspec.conformance --impl" in told(capsys, "ROPE-07")


def test_a_property_goes_by_its_name_and_tells_who_cites_it(capsys):
    text = told(capsys, "ro3")
    assert text.startswith(f"RO3 {properties()['RO3']}")
    assert "ROPE-07 positions, frequencies and angles are computed in float32" in text
    assert "ROPE-01" not in text
    assert "a token sees the last 256 alone (fault llama-window-of-256, LLAMA-01)" in told(capsys, "CM5")


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_requirement_can_be_explained(capsys, component):
    promised = contract(component)
    page = explain.Page(Console(width=120))
    for about in promised.requirements:
        explain.requirement(page, promised, about)
    text = capsys.readouterr().out
    assert text.count("pytest conformance --impl impl") == len(promised.requirements)
    text = told(capsys, component)
    assert all(about.id in text for about in promised.requirements)


def test_every_operation_says_how_its_budget_is_derived():
    for operation in (op for one in contracts() for op in one.operations):
        text, place = explain.budget_of(operation)
        assert "udget" in text or text.startswith("0: nothing is computed"), operation
        assert place.startswith("spec/")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("ROPE-77", "ROPE-07"),
        ("ropes", "rope"),
        ("softmx", "softmax"),
        ("rope-positions-in-bfloat61", "rope-positions-in"),
    ],
)
def test_of_an_unknown_name_the_nearest_are_told(capsys, name, nearest):
    assert main(["explain", name]) == 2
    first, *others = capsys.readouterr().out.splitlines()
    assert first == f"there is no requirement or component {name!r}; the nearest are"
    assert any(line.strip().startswith(nearest) for line in others)


@pytest.mark.parametrize("name", ["softmax", "Softmax"])
def test_a_name_of_the_contract_is_told_with_what_is_its_own(capsys, name):
    text = told(capsys, name)
    assert text.startswith("linear linear layer")
    assert "SMAX-01" in text
    assert "SILU-01" not in text
    assert "inferspec explain --xray softmax" in text


def test_an_x_ray_is_also_of_a_name_of_the_contract(capsys):
    assert told(capsys, "--xray", "RMSNorm") == told(capsys, "--xray", "rms_norm")
    assert told(capsys, "--xray", "silu") in told(capsys, "--xray", "linear")


def test_of_a_name_that_is_near_to_nothing_the_components_are_told(capsys):
    assert main(["explain", "zzzzzzzz"]) == 2
    assert capsys.readouterr().out.startswith(
        "there is no requirement or component 'zzzzzzzz'; the components are linear"
    )


def test_an_x_ray_is_of_a_component(capsys):
    assert main(["explain", "--xray", "ROPE-07"]) == 2
    assert "--xray takes a component: rope is that of ROPE-07" in capsys.readouterr().out


def test_an_x_ray_goes_through_the_steps_in_order(capsys):
    text = told(capsys, "--xray", "rope")
    steps = ["1. dims", "2. positions", "3. frequencies", "4. angles", "5. coefficients", "6. features", "7. turn"]
    assert sorted(steps, key=text.index) == steps
    assert "Radians per position of each pair." in text
    assert "→ float64[1, 2] [[3. 4.]]" in text  # offset 3
    assert "→ float64[2] [1. 0.01]" in text  # 10000^0 and 10000^(-2/4)


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_component_can_be_x_rayed(capsys, component):
    text = told(capsys, "--xray", component)
    assert text.count("what a subject returns") == len(contract(component).operations)
    assert "1. " in text
    assert "object at 0x" not in text
    assert "array(" not in text


@pytest.mark.parametrize("component", COMPONENTS)
def test_watching_an_oracle_changes_nothing(component):
    for operation in contract(component).operations:
        call = xray.example(operation)
        steps, watched = xray.traced(operation, call)
        assert steps
        alone = operation()(**call.arguments)
        for got, expected in zip(
            *((x.values() if isinstance(x, dict) else [x]) for x in (watched, alone)), strict=True
        ):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("mlx 62f297b51, 005e7efa6; PROPERTIES X1", ["mlx/commit/62f297b51", "mlx/commit/005e7efa6"]),
        ("mlx#665, mlx 5f9ba3019", ["mlx/issues/665", "mlx/commit/5f9ba3019"]),
        ("the kind of mlx-lm db368f25", ["mlx-lm/commit/db368f25"]),
    ],
)
def test_commits_and_threads_named_in_short_become_links(source, found):
    assert links(source) == [f"https://github.com/ml-explore/{one}" for one in found]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("PROPERTIES X9", ["X9"]),
        ("mlx#665; PROPERTIES PG1 to PG3, X9", ["PG1", "PG2", "PG3", "X9"]),
        ("PROPERTIES, decisions", []),
        ("Leviathan et al. 2023", []),
    ],
)
def test_the_properties_that_a_source_cites_are_found(source, names):
    assert cited(source) == names


def test_a_property_that_the_page_lacks_is_an_error():
    with pytest.raises(KeyError, match="X99"):
        cited("PROPERTIES X99")


@pytest.mark.parametrize("component", COMPONENTS)
def test_sources_cite_what_the_page_has(component):
    for one in (*contract(component).requirements, *contract(component).faults):
        cited(one.source)
        assert not re.search(r"\b(DESIGN|FACTS)\b", one.source), one.source
        assert not one.source.endswith("PROPERTIES"), one.source


def test_every_property_is_cited_but_those_that_the_page_says_are_asked_of_nobody():
    every = [one.source for component in contracts() for one in (*component.requirements, *component.faults)]
    unasked = {name for name, sentence in properties().items() if "Asked of nobody: " in sentence}
    assert properties().keys() - {name for source in every for name in cited(source)} == unasked


def test_a_property_is_told_with_its_sentence(capsys):
    assert f"RO3 {properties()['RO3']}" in told(capsys, "ROPE-07")


def test_links_of_other_projects_and_of_none():
    assert links("flashinfer#4347, 103fcf862; vllm pull 50979") == [
        "https://github.com/flashinfer-ai/flashinfer/issues/4347",
        "https://github.com/flashinfer-ai/flashinfer/commit/103fcf862",
        "https://github.com/vllm-project/vllm/issues/50979",
    ]
    assert links("https://github.com/a/b/pull/1; https://c.org/d (so)") == [
        "https://github.com/a/b/pull/1",
        "https://c.org/d",
    ]
    assert links("a tired engineer; tiny-llm course, week 1 day 2; PROPERTIES RO1") == []

"""A waiver is complete or refused, and waives what it says and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

import inferspec.conformance.subjects
from inferspec.conformance.reporting.waivers import Waiver, WaiverError, read_findings, read_waivers

SUBJECTS = Path(inferspec.conformance.subjects.__file__).parent

WAIVER = {
    "requirement": '"CMASK-03"',
    "scope": '{ dtypes = ["float16"] }',
    "reason": '"the library has no float16 masks"',
    "issue": '"https://example.org/issues/7"',
    "expires": "2999-01-31",
}


def toml(**fields):
    entry = {**WAIVER, **fields}
    return "[[waiver]]\n" + "".join(f"{name} = {value}\n" for name, value in entry.items() if value is not None)


def read(tmp_path, text, device="cpu"):
    (tmp_path / "waivers.toml").write_text(text, encoding="utf-8")
    return read_waivers(tmp_path / "waivers.toml", device)


def test_a_complete_waiver_covers_its_scope_and_nothing_else(tmp_path):
    waiver = read(tmp_path, toml())["CMASK-03"]
    assert waiver.covers({"dtypes": "float16", "masks": "none"})
    assert not waiver.covers({"dtypes": "bfloat16"})
    assert not waiver.covers({})


def test_a_scope_of_several_keys_covers_only_where_all_of_them_hold(tmp_path):
    text = toml(requirement='"ATTN-04"', scope='{ dtypes = ["float16", "bfloat16"], leading_dims = [[2, 3]] }')
    waiver = read(tmp_path, text)["ATTN-04"]
    assert waiver.covers({"dtypes": "bfloat16", "leading_dims": (2, 3)})
    assert not waiver.covers({"dtypes": "bfloat16", "leading_dims": (2,)})


def test_a_waiver_of_all_covers_everything(tmp_path):
    assert read(tmp_path, toml(scope='"all"'))["CMASK-03"].covers({})


def test_a_waiver_of_a_device_waives_nothing_on_another(tmp_path):
    assert read(tmp_path, toml(device='"gpu"'), device="gpu").keys() == {"CMASK-03"}
    assert not read(tmp_path, toml(device='"gpu"'), device="cpu")


def test_a_requirement_may_be_waived_on_each_device_for_its_own_reason(tmp_path):
    text = toml(device='"gpu"', reason='"one"') + toml(device='"cpu"', reason='"another"')
    assert read(tmp_path, text, device="gpu")["CMASK-03"].reason == "one"
    assert read(tmp_path, text, device="cpu")["CMASK-03"].reason == "another"


@pytest.mark.parametrize("name", WAIVER)
@pytest.mark.parametrize("value", [None, '""'])
def test_every_field_is_required(tmp_path, name, value):
    with pytest.raises(WaiverError, match=f"entry 1 misses {name}; a waiver has requirement, scope"):
        read(tmp_path, toml(**{name: value}))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (toml(requirement='"CMASK-99"'), "there is no requirement 'CMASK-99'"),
        (toml(issue='"#7"'), "issue is '#7'; it takes the URL of an issue"),
        (toml(expires='"2999-01-31"'), "expires is '2999-01-31'; it takes a date such as 2027-01-31"),
        (toml(expires="2999-01-31T00:00:00Z"), "it takes a date such as"),
        (toml(scope='"float16"'), "scope is 'float16'; it takes \"all\" or a table"),
        (toml(scope='{ dtypes = "float16" }'), 'it takes "all" or a table'),
        (
            toml(scope='{ dtypes = ["float16", "bfloat17"] }'),
            "scope has 'bfloat17' in dtypes; it takes any of float32, float16, bfloat16; did you mean bfloat16?",
        ),
        (toml(scope='{ dtype = ["float16"] }'), "scope has 'dtype'; it takes any of dtypes, head_dims"),
        (toml(until="2999-01-31"), "has 'until'; a waiver has requirement, scope"),
        (toml() + toml(), "CMASK-03 is waived twice"),
        (toml(device='"gpu"') + toml(), "CMASK-03 is waived twice"),
        (toml() + toml(device='"gpu"'), "CMASK-03 is waived twice"),
        (toml(device='"gpu"') + toml(device='"gpu"'), "CMASK-03 is waived twice"),
        (toml(device='""'), "device is ''; it takes what a certificate calls the device, such as \"gpu\""),
        (toml(device='"GPU"'), "device is 'GPU'; it takes what a certificate calls the device"),
        (toml(device='["gpu"]'), "it takes what a certificate calls the device"),
        (
            toml().replace("[[waiver]]", "[waiver]"),
            r"it takes \[\[waiver\]\] and \[\[finding\]\] entries and nothing else",
        ),
        (
            toml().replace("[[waiver]]", "[[waivers]]"),
            r"it takes \[\[waiver\]\] and \[\[finding\]\] entries and nothing else",
        ),
        (toml(requirement='["CMASK-03"]'), r"requirement is \['CMASK-03'\]; it takes a text"),
        (toml(reason="7"), "reason is 7; it takes a text"),
        (toml(issue='["https://example.org"]'), "it takes a text"),
        (toml(scope="{ dtypes = [2027-01-31] }"), "it takes texts, numbers and lists of such"),
        ("waiver = [1]", r"it takes \[\[waiver\]\] and \[\[finding\]\] entries and nothing else"),
        ("not toml", "waivers waivers.toml"),
    ],
)
def test_a_waiver_that_cannot_be_used_is_one_line_that_says_how_to_mend_it(tmp_path, text, says):
    with pytest.raises(WaiverError, match=says) as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_a_waiver_is_the_same_after_a_way_as_plain_data(tmp_path):
    (waiver,) = read(tmp_path, toml()).values()
    assert isinstance(waiver.plain()["expires"], str)
    assert Waiver.from_plain(waiver.plain()) == waiver


def test_a_file_that_is_no_text_is_an_error(tmp_path):
    (tmp_path / "waivers.toml").write_bytes(b"\xff")
    with pytest.raises(WaiverError, match=r"waivers waivers\.toml"):
        read_waivers(tmp_path / "waivers.toml", "cpu")


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(WaiverError, match="nowhere"):
        read_waivers(tmp_path / "nowhere.toml", "cpu")


@pytest.mark.parametrize("path", sorted(SUBJECTS.rglob("*.toml")), ids=lambda path: path.name)
def test_the_waivers_and_findings_of_the_registered_subjects_can_be_read(path):
    assert read_waivers(path, "cpu") or read_findings(path, "cpu")


FINDING = '[[finding]]\nrequirements = ["CMASK-01", "CMASK-03"]\nreason = "nobody looks"\n'


def test_a_finding_waives_nothing(tmp_path):
    assert read(tmp_path, toml() + FINDING).keys() == {"CMASK-03"}
    assert read_findings(tmp_path / "waivers.toml", "cpu") == dict.fromkeys(["CMASK-01", "CMASK-03"], "nobody looks")


def test_a_finding_of_a_device_is_none_on_another(tmp_path):
    (tmp_path / "waivers.toml").write_text(FINDING + 'device = "gpu"\n', encoding="utf-8")
    assert read_findings(tmp_path / "waivers.toml", "gpu").keys() == {"CMASK-01", "CMASK-03"}
    assert not read_findings(tmp_path / "waivers.toml", "cpu")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (FINDING + "device = 7", "finding 1: device is 7; it takes what a certificate calls the device"),
        (FINDING.replace("CMASK-01", "CMASK-99"), "finding 1: there is no requirement 'CMASK-99'"),
        (FINDING.replace("nobody looks", ""), "finding 1: a finding has requirements, which is a list, and a reason"),
        (FINDING.replace("reason", "because"), "finding 1: a finding has requirements, which is a list, and a reason"),
        (FINDING.replace('["CMASK-01", "CMASK-03"]', '"CMASK-01"'), "which is a list"),
        (FINDING.replace('"CMASK-01"', '["CMASK-01"]'), "which is a list"),
        (FINDING.replace('"nobody looks"', "7"), "which is a list, and a reason"),
    ],
)
def test_a_bad_finding_is_refused(tmp_path, text, says):
    (tmp_path / "waivers.toml").write_text(text, encoding="utf-8")
    for reader in (read_findings, read_waivers):
        with pytest.raises(WaiverError, match=says):
            reader(tmp_path / "waivers.toml", "cpu")


# A subject whose float16 masks come back as float32

SUBJECT = """
import numpy as np
WAIVERS = "waivers.toml"

def causal_mask(L, S, dtype):
    if min(L, S) < 0:
        raise ValueError("negative")
    return np.triu(np.full((L, S), -np.inf), S - L + 1).astype(np.float32 if dtype == np.float16 else dtype)
"""


@pytest.mark.parametrize(
    ("waivers", "verdict", "code"),
    [
        pytest.param(toml(), "conformant with 1 waiver", 0, id="of one that fails"),
        pytest.param(
            toml() + toml(requirement='"CMASK-01"'), "nonconformant with 1 waiver", 1, id="of one that passes"
        ),
    ],
)
def test_a_failure_is_waived_where_the_waiver_says_so(certify, waivers, verdict, code):
    run = certify({"mask.py": SUBJECT, "waivers.toml": waivers}, "--impl", "./mask.py")
    assert run.row("CMASK-03")["state"] == "waived"
    assert f"verdict: {verdict}" in run.text.splitlines()
    assert run.code == code


def test_a_finding_is_failed_with_its_reason(certify):
    finding = '[[finding]]\nrequirements = ["CMASK-03"]\nreason = """float16 is\nwide"""\n'
    # In a worker, which is handed what is known.
    asked = ("--profile", "quick", "-n", "1", "-m", "requirement(id='CMASK-03')")
    run = certify(
        {"mask.py": SUBJECT, "waivers.toml": finding}, "--impl", "./mask.py", *asked, suite="test_attention_masks"
    )
    assert (run.row("CMASK-03")["state"], run.code) == ("failed", 1)
    assert "  known of mask: float16 is wide\n  rerun: " in run.text


@pytest.mark.parametrize(
    "elsewhere", [toml(scope='{ dtypes = ["bfloat16"] }'), toml(device='"gpu"')], ids=["scope", "device"]
)
def test_a_failure_elsewhere_is_not_waived(certify, elsewhere):
    run = certify({"mask.py": SUBJECT, "waivers.toml": elsewhere}, "--impl", "./mask.py", suite="test_attention_masks")
    assert (run.row("CMASK-03")["state"], run.code) == ("failed", 1)


def test_a_bad_waiver_file_is_one_line(certify):
    run = certify({"mask.py": SUBJECT, "waivers.toml": toml(issue='"#7"')}, "--impl", "./mask.py")
    assert "issue is '#7'; it takes the URL of an issue" in run.complaint()

"""`--impl impl.cpu`: what runs on the CPU kernels, certified by itself; the certificate names the path."""

from __future__ import annotations

import pytest

from inferspec.impl.kernels import cpu

SUBJECT = ("--impl", "inferspec.impl.cpu", "--metal", "off")


def test_the_certificate_names_the_path(certify, monkeypatch):
    try:
        cpu.load()
    except cpu.Unavailable as error:
        pytest.skip(str(error))
    monkeypatch.setenv("INFERSPEC_CPU", "portable")
    run = certify({}, *SUBJECT, "-k", "test_square_weights_are_read_by_rows", suite="test_quantization_products")
    assert run.code == pytest.ExitCode.OK, run.text
    assert "1 passed" in run.text
    assert run.certificate["subject"]["kernel_path"] == "cpu portable"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("METALSIM_CXX", "no-such-compiler", "install one"),
        ("INFERSPEC_CPU", "off", "INFERSPEC_CPU is off"),
        ("INFERSPEC_CPU", "sse9", "INFERSPEC_CPU is 'sse9'; it takes"),
    ],
)
def test_the_subject_says_why_it_cannot_run(certify, monkeypatch, name, value, said):
    monkeypatch.setenv(name, value)
    complaint = certify({}, *SUBJECT).complaint()
    assert "inferspec.impl.cpu cannot run here" in complaint
    assert said in complaint

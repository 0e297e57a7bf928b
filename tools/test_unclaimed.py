"""Is what a subject leaves out of its envelope reported where it works, and only there?"""

import pytest

from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.unclaimed import unclaimed
from inferspec.spec.generation import Generate
from inferspec.spec.llama import Llama
from inferspec.spec.rope import RoPE
from inferspec.spec.watch import Request


class AboveZero(Generate):
    """Takes no limit of 0, as litgpt's."""

    def check_limit(self, request: Request) -> None:
        assert request.max_tokens > 0


@pytest.mark.parametrize(
    ("operation", "envelope", "reported"),
    [
        (RoPE, {"rope": {"offsets": ["none", "int"]}}, {"RoPE": ["offsets: slice", "offsets: slices"]}),
        (
            Llama,
            {"llama": {"rope_types": ["default", "yarn"]}},
            {"Llama": ["rope_types: linear", "rope_types: llama3"]},
        ),
        (AboveZero, {"generation": {"zero_max_tokens": [False]}}, {}),
        (Generate, {"generation": {"stops": [0, 1]}}, {"generate": ["stops: 2", "stops: 3", "stops: 9"]}),
    ],
)
def test_what_works_although_it_is_not_claimed_is_reported_where_it_was_tried(operation, envelope, reported):
    subject = LocalSubject({operation.signature.operation: operation})
    subject.description.envelope = envelope
    assert unclaimed(subject, subject.description) == reported

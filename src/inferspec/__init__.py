"""Inferspec: the conformance kit for LLM inference components.

``inferspec.spec`` is the contract, ``inferspec.conformance`` the suites, ``inferspec.impl`` an implementation that
meets them, ``inferspec.golden`` tensors made by independent oracles, ``inferspec.tools`` the command line.

PYTEST_DONT_REWRITE: nothing is asserted in this file, and `inferspec certify` has imported it when pytest begins.
"""

import os

__version__ = "0.1.0"

if "INFERSPEC_CLOSED" in os.environ:
    # A process that a subject started: what is closed to the subject is closed to it too (`conformance.trust.isolation`).
    from inferspec.conformance.trust.isolation import closed

    closed()

"""Inferspec: the conformance kit for LLM inference components.

``inferspec.spec`` is the contract, ``inferspec.conformance`` the suites, ``inferspec.impl`` an implementation that
meets them, ``inferspec.golden`` tensors made by independent oracles, ``inferspec.tools`` the command line.
"""

__version__ = "0.1.0"

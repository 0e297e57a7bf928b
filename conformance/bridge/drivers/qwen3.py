"""How a Qwen3 with a cache is used."""

from inferspec.conformance.bridge.drivers.decoder import feed

DRIVERS = {"Qwen3.incremental": feed}

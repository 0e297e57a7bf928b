"""How a Llama with a cache is used."""

from inferspec.conformance.bridge.drivers.decoder import feed

DRIVERS = {"Llama.incremental": feed}

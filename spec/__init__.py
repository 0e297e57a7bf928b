"""The contracts: one module per component, and nothing but NumPy and the standard library underneath."""

from importlib import import_module

from inferspec.spec.contract import Contract, Operation

COMPONENTS = (
    "linear",
    "attention",
    "flash_attention",
    "paged_attention",
    "rope",
    "rms_norm",
    "mlp",
    "embedding",
    "quantization",
    "kv_cache",
    "batching",
    "paged_kv",
    "block_manager",
    "scheduler",
    "sampling",
    "speculative",
    "llama",
    "qwen3",
    "loading",
    "generation",
    "metrics",
    "engine",
)
"""The components under contract, in the order in which a report lists them."""


def contract(component: str) -> Contract:
    """Return the contract of one of COMPONENTS; KeyError for any other name."""
    if component not in COMPONENTS:
        raise KeyError(f"no component {component!r}; the kit has {', '.join(COMPONENTS)}")
    return import_module(f"inferspec.spec.{component}").CONTRACT


def located(operation: str) -> tuple[Contract, type[Operation]]:
    """Return the contract that has an operation, and the operation; KeyError for any other name."""
    for about in contracts():
        for one in about.operations:
            if one.signature.operation == operation:
                return about, one
    raise KeyError(operation)


def contracts() -> tuple[Contract, ...]:
    """Return every contract, in the order of COMPONENTS."""
    return tuple(contract(component) for component in COMPONENTS)

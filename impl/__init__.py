"""The kit's own implementation, in MLX: one module per component, the same names as the contracts."""

from inferspec import __version__ as VERSION

NAME = "inferspec.impl"

__all__ = ["NAME", "VERSION"]

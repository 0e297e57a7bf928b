"""``inferspec simulate``: block manager and scheduler at scale, in virtual time."""

from inferspec.tools.simulate.command import add_parser

__all__ = ["add_parser"]

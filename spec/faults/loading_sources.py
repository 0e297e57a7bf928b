"""Where mistakes in loaders come from."""

from __future__ import annotations

TIRED = "what a tired author writes"

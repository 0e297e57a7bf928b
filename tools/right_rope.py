"""A RoPE of NumPy as the file of a subject, right in all that it does."""

RIGHT = """
import numpy as np

def rope(x, offset=None, base=10000):
    starts = [0 if offset is None else offset] if not isinstance(offset, list) else offset
    starts = [s.start if isinstance(s, slice) else s for s in starts]
    dims = x.shape[-1]
    inverse = float(base) ** (-np.arange(0, dims, 2) / dims)
    positions = np.array(starts)[:, None] + np.arange(x.shape[1])
    angles = positions[:, :, None, None] * inverse
    first, second = np.split(x.astype(np.float64), 2, axis=-1)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1).astype(x.dtype)
"""

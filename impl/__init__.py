"""The kit's own implementation, in MLX: one module per component, the same names as the contracts."""

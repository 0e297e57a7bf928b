"""The calls that tests draw: one module per component, the same names as the contracts."""

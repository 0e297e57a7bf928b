"""The fault dictionary and the honest variants: one module per component, the same names as the contracts,
and more of them beside it where one would be too long."""

"""What faults and honest variants do otherwise, step by step: one module per component, the same names as the contracts,
and more of them beside it where one would be too long."""

"""x"""
FAULTS = ()
VARIANTS = ()

"""The way to a subject: what an adapter offers is found and bound to the contract's names, called in a process of its own, and its
arrays are carried to and fro.
"""

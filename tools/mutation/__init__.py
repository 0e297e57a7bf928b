"""Mutation of the oracles' own source: does the suite notice when the contract's arithmetic is changed a little?"""

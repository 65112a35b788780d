"""A second reader of Refrain archives, written from the format's documents alone.

Section numbers in this package are those of docs/format.md.
"""

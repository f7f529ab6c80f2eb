"""A request's states and what changes them: the ledger's types, the transition table and its rules; no I/O.

The rest of `dispatch` carries these rules out.
"""

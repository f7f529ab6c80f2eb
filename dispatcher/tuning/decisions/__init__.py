"""Stored decisions: read, replayed under other terms, compared, labelled, searched for gaps."""

"""One request from start to end: accept, relay, collect, merge; the ledger's types and rules."""

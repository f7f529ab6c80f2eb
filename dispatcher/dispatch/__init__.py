"""One request from start to end: accept, relay, collect, merge; what changes a request is in `lifecycle`."""

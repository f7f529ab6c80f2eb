"""`dispatcher eval`: the product's own routing over a labelled set, and its figures."""

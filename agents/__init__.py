"""Sample agents of a small shop, each with data of its own and runnable alone."""

"""`dispatcher fit`: calibrations from labelled rows or confirmed traffic, and what they are worth."""

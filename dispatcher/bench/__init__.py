"""Benchmarks: what a dispatch and a decision cost beside the bare thing each is built on.

Every figure is a median of interleaved rounds, and what matters are ratios within a round: the
speed of a shared machine changes by a factor of two within seconds.
"""

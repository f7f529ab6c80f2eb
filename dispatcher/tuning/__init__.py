"""Offline work on data sets: what is measured here ships as package data or settings."""

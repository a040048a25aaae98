"""Operators and what they mean, and the rewrite rules over them."""

"""Searches side by side, on one graph, with the same rules and the same costs.

Reading order: `row` (what is said of a search), `search` (running one), `memory`, `worker`
(each in a process of its own), `table`, `plot`. `tensat.compare` puts them together.
"""

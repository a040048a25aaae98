"""Parts of the backtracking search: graphs that share one store of terms.

Reading order: `terms` (values, each made once), `state` (a graph over them), `sites` (where
rules match), `neighbours` (what becomes of a graph where they do), `rebuild`.
"""

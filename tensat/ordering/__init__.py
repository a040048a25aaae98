"""Whether predicted costs order equivalent graphs as measured times do.

Hand-made pairs of models that compute the same in two ways, each predicted and raced:
``python -m tensat.ordering``. Reading order: `pair` (what a pair is), `net` (how its models
are written), `linear`, `convolution`, `pooling`, `elementwise`, `transformer`, `blocked`
(the pairs), `pairs` (all of them), `predict` (what the costs say), `result` (who was
right), `bench` (the run), `table` (how it is shown).
"""

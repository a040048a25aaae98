"""What a model takes in ONNX Runtime, predicted kernel by kernel and measured.

Reading order: `running_graph` (the graph that the runtime runs, with all sizes), `question`
(what is asked of a cost source about a node), `as_is` (nodes that have to be timed with the
values they really see), `result` (what was found), `table` (how it is shown).
"""

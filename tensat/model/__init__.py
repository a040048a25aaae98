"""ONNX models and the graph that everything else works on.

Reading order: `graph` (what a model is here), `onnx_read`, `onnx_import`, `onnx_export`,
`onnx_write`; the other files are parts of these.
"""

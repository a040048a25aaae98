"""Optimize ONNX models: equality saturation, exact extraction, measured costs."""

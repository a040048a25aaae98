"""Writes the TensorFlow models of this folder with tf2onnx.

``python make_tensorflow.py FOLDER`` does it.

Weights are NumPy arrays that become constants of the traced function. A TensorFlow tensor
made outside of it would be captured, and tf2onnx would make it an input of the model.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf2onnx


def image() -> Any:
    """Convolutions over [n, h, w, c], TensorFlow's own layout, with batch norms."""
    rng = np.random.default_rng(0)

    def weight(*dims: int) -> np.ndarray:
        return (rng.standard_normal(dims) * 0.3).astype(np.float32)

    first, depth = weight(3, 3, 3, 8), weight(3, 3, 8, 1)
    point, dense = weight(1, 1, 8, 8), weight(8, 5)
    norms = rng.uniform(0.5, 1.5, (2, 4, 8)).astype(np.float32)

    @tf.function(input_signature=[tf.TensorSpec([None, 16, 16, 3], tf.float32, name="x")])
    def run(x: Any) -> Any:
        x = tf.nn.conv2d(x, first, 2, "SAME")
        x = tf.nn.relu6(tf.nn.batch_normalization(x, *norms[0], 1e-3))
        y = tf.nn.relu(tf.nn.depthwise_conv2d(x, depth, [1, 1, 1, 1], "SAME"))
        y = tf.nn.batch_normalization(tf.nn.conv2d(y, point, 1, "SAME"), *norms[1], 1e-3)
        x = tf.reduce_mean(tf.nn.relu(x + y), [1, 2])
        return tf.nn.softmax(tf.nn.bias_add(tf.matmul(x, dense), dense[0]))

    return run


def text() -> Any:
    """An attention whose batch is open."""
    rng = np.random.default_rng(1)
    weights = (rng.standard_normal((4, 16, 16)) * 0.3).astype(np.float32)

    @tf.function(input_signature=[tf.TensorSpec([None, 6, 16], tf.float32, name="x")])
    def run(x: Any) -> Any:
        def heads(t: Any) -> Any:
            return tf.transpose(tf.reshape(t, [-1, 6, 2, 8]), [0, 2, 1, 3])

        q, k, v = (heads(tf.einsum("bld,de->ble", x, one)) for one in weights[:3])
        scores = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 8**-0.5)
        mixed = tf.reshape(tf.transpose(tf.matmul(scores, v), [0, 2, 1, 3]), [-1, 6, 16])
        return x + tf.einsum("bld,de->ble", mixed, weights[3])

    return run


def export(folder: Path) -> list[Path]:
    """Write every model; return the files."""
    written = []
    for name, function in (("image", image()), ("text", text())):
        path = folder / f"tf2onnx_{name}.onnx"
        signature = function.input_signature
        tf2onnx.convert.from_function(function, signature, opset=15, output_path=str(path))
        written.append(path)
    return written


if __name__ == "__main__":
    export(Path(sys.argv[1]))

"""Measuring in ONNX Runtime's CUDA provider, device calls kept behind one seam.

In order: `trouble` is why there is no time, `provider` the options of a CUDA session,
`device` what measuring asks of a GPU, `clock` the procedure of timing, `native` and
`crosscheck` the comparison with CuPy's own kernels, `bench` both in one, `child` the same
in a process of its own, which runs `worker`; `nhwc` channels-last convolutions as
ONNX Runtime's own operator. `cupy_device` is the only module that touches CuPy or makes a
CUDA session; all others run without a GPU.
"""

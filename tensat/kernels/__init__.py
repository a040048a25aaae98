"""What the runtime really runs: fused kernels and layouts, as choices of the extractor.

A rewrite rule speaks of operators; the runtime runs *kernels*: it computes a convolution,
the addition behind it and the activation behind that in one pass, and keeps tensors in
blocks of channels between convolutions. Reading order: `kernel` (the vocabulary), `fusions`
(which operators become one kernel), `blocked` (which kernels run on blocked tensors),
`problem` (the e-graph of kernels that extraction sees).
"""

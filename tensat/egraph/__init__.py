"""The e-graph of a model: encode, compile rules, saturate, price, decode.

Reading order: `engine` (egglog), `tensor_egraph` (types and constants on top of it),
`encode`, `compile_rules`, `apply_rules`, `saturate`, `price`, `decode`.
"""

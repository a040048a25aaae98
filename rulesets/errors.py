"""The errors of rulesets.

RulesetsError
├── SizeError                 a symbolic size cannot be computed
└── OperatorError             an operator is used in a way it does not have
    ├── UnknownOperatorError
    ├── AttributeValueError
    └── ShapeError            it does not apply to tensors of these types and shapes
"""


class RulesetsError(Exception):
    """Any error of this package."""


class SizeError(RulesetsError):
    """A symbolic size cannot be computed."""


class OperatorError(RulesetsError):
    """An operator is used in a way it does not have."""


class UnknownOperatorError(OperatorError):
    """There is no operator of this name."""


class AttributeValueError(OperatorError):
    """An attribute is unknown, missing, or has a value of the wrong kind."""


class ShapeError(OperatorError):
    """An operator does not apply to tensors of these types and shapes."""
